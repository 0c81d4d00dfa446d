import type { Kysely } from 'kysely';
import { recordChange } from '../audit/intake.ts';
import { type Clock, isoTime } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Store } from '../store/database.ts';
import type { Tables, UserNamesTable } from '../store/schema.ts';
import { canonicalName } from './names.ts';
import type { Role } from './permissions.ts';
import { parseRoles, toUser, type User } from './user.ts';

export interface UsersOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Which daemon writes: goes into audit rows. */
  readonly service: string;
  readonly rights?: RightsPicture | undefined;
  /** Called when somebody may do less or more than before, or is gone: whoever is in under that name must come in anew. */
  readonly onRightsChanged: (user: string) => Promise<void>;
}

/** Where others see what people may do without asking the store. */
export interface RightsPicture {
  /** Before somebody may do less: from here on nothing may count on that one's rights. */
  suspend(user: string): Promise<void>;
  /** After any change, also one that failed. */
  draw(): Promise<void>;
}

export interface NewUser {
  readonly id: string;
  readonly name?: string | undefined;
  readonly email?: string | undefined;
  readonly manager?: string | undefined;
  readonly roles: readonly Role[];
  readonly aliases?: readonly string[] | undefined;
}

/** What is left out stays; an empty text takes away. */
export type UserChange = Partial<Omit<NewUser, 'id'>>;

/** The people and agents that may call. Nobody is ever deleted: what they did keeps their name. */
export class Users {
  readonly #options: UsersOptions;

  constructor(options: UsersOptions) {
    this.#options = options;
  }

  async list(): Promise<User[]> {
    const { db } = this.#options.store;
    const [rows, names] = await Promise.all([
      db.selectFrom('users').selectAll().orderBy('id').execute(),
      db.selectFrom('user_names').selectAll().where('kind', '=', 'alias').orderBy('canonical').execute(),
    ]);
    const aliases = Map.groupBy(names, ({ user_id }) => user_id);
    return rows.map((row) =>
      toUser(
        row,
        (aliases.get(row.id) ?? []).map(({ name }) => name),
      ),
    );
  }

  /** By id, address or alias: whatever a person is called. */
  async find(name: string): Promise<User | undefined> {
    const { db } = this.#options.store;
    const known = await db
      .selectFrom('user_names')
      .select('user_id')
      .where('canonical', '=', canonicalName(name))
      .executeTakeFirst();
    return known && this.#read(db, known.user_id);
  }

  /** The same, where there must be one. */
  async get(name: string): Promise<User> {
    const user = await this.find(name);
    if (!user) throw new ReeveError('USER_UNKNOWN', { user: name });
    return user;
  }

  async add({ id, name = id, email, manager, roles, aliases = [] }: NewUser): Promise<User> {
    const { clock } = this.#options;
    const at = isoTime(clock);
    return this.#change(id, async (tx) => {
      await this.#refuseStranger(tx, manager, id);
      const row = { id, name, email: email ?? null, manager: manager ?? null, roles: JSON.stringify(roles) };
      await claimNames(tx, id, { email, aliases, isNew: true }, () =>
        tx
          .insertInto('users')
          .values({ ...row, state: 'active', created_at: at, updated_at: at, removed_at: null })
          .execute(),
      );
      await this.#record(tx, 'user.add', id, '', 'active', { roles, email, manager, aliases });
    });
  }

  async set(name: string, change: UserChange): Promise<User> {
    const { id, state, roles: before } = await this.get(name);
    if (state === 'removed') throw new ReeveError('USER_REMOVED', { user: id });
    if (change.roles && before.some((role) => !change.roles?.includes(role))) await this.#options.rights?.suspend(id);
    return this.#change(id, async (tx) => {
      const found = (await this.#read(tx, id)) as User;
      if (change.manager) await this.#refuseStranger(tx, change.manager, id);
      const roles = change.roles ?? found.roles;
      await tx
        .updateTable('users')
        .set({
          name: change.name ?? found.name,
          email: orNull(change.email ?? found.email),
          manager: orNull(change.manager ?? found.manager),
          roles: JSON.stringify(roles),
          updated_at: isoTime(this.#options.clock),
        })
        .where('id', '=', id)
        .execute();
      await claimNames(tx, id, {
        email: change.email ?? found.email,
        aliases: change.aliases ?? found.aliases,
        isNew: false,
      });
      await refuseWithoutAdmin(tx, this.#options.clock);
      await this.#record(tx, 'user.set', id, 'active', 'active', { before: found.roles, roles, ...change });
    });
  }

  /** Its tokens and sessions are dead at once. Its names stay taken, so that nobody can come after and be taken for it. */
  async remove(name: string): Promise<User> {
    const { id, state } = await this.get(name);
    if (state === 'removed') return this.get(id);
    await this.#options.rights?.suspend(id);
    return this.#change(id, async (tx) => {
      const at = isoTime(this.#options.clock);
      await tx
        .updateTable('users')
        .set({ state: 'removed', removed_at: at, updated_at: at })
        .where('id', '=', id)
        .execute();
      await tx
        .updateTable('tokens')
        .set({ revoked_at: at })
        .where('user_id', '=', id)
        .where('revoked_at', 'is', null)
        .execute();
      await refuseWithoutAdmin(tx, this.#options.clock);
      await this.#record(tx, 'user.remove', id, 'active', 'removed', {});
    });
  }

  async #change(id: string, work: (tx: Kysely<Tables>) => Promise<void>): Promise<User> {
    const { store } = this.#options;
    const before = await this.#read(store.db, id);
    try {
      await store.db.transaction().execute(work);
    } finally {
      await this.#options.rights?.draw();
    }
    const after = (await this.#read(store.db, id)) as User;
    if (before && rightsText(before) !== rightsText(after)) await this.#options.onRightsChanged(id);
    return after;
  }

  async #read(db: Kysely<Tables>, id: string): Promise<User | undefined> {
    const row = await db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst();
    if (!row) return undefined;
    const aliases = await db
      .selectFrom('user_names')
      .select('name')
      .where('user_id', '=', id)
      .where('kind', '=', 'alias')
      .orderBy('canonical')
      .execute();
    return toUser(
      row,
      aliases.map(({ name }) => name),
    );
  }

  async #refuseStranger(tx: Kysely<Tables>, manager: string | undefined, user: string): Promise<void> {
    if (!manager) return;
    const found = await tx.selectFrom('users').select('state').where('id', '=', manager).executeTakeFirst();
    if (found?.state !== 'active' || manager === user) throw new ReeveError('USER_UNKNOWN', { user: manager });
  }

  #record(tx: Kysely<Tables>, action: string, id: string, from: string, to: string, detail: object): Promise<void> {
    const { clock, service } = this.#options;
    return recordChange(tx, clock, service, { action, subject: `user:${id}`, from, to, detail });
  }
}

interface Names {
  readonly email?: string | undefined;
  readonly aliases: readonly string[];
  readonly isNew: boolean;
}

/** One name, one person: whoever has a name first keeps it, however it is spelt. */
async function claimNames(
  tx: Kysely<Tables>,
  id: string,
  { email, aliases, isNew }: Names,
  enter?: () => Promise<unknown>,
): Promise<void> {
  const wanted = new Map<string, UserNamesTable>();
  const want = (name: string, kind: UserNamesTable['kind']) => {
    const canonical = canonicalName(name);
    if (!wanted.has(canonical)) wanted.set(canonical, { canonical, user_id: id, name, kind });
  };
  want(id, 'id');
  if (email) want(email, 'email');
  for (const alias of aliases) want(alias, 'alias');
  const taken = await tx
    .selectFrom('user_names')
    .selectAll()
    .where('canonical', 'in', [...wanted.keys()])
    .execute();
  const foreign = taken.find(({ user_id }) => isNew || user_id !== id);
  if (foreign) throw new ReeveError('NAME_TAKEN', { name: wanted.get(foreign.canonical)?.name, user: foreign.user_id });
  await enter?.();
  await tx.deleteFrom('user_names').where('user_id', '=', id).execute();
  await tx
    .insertInto('user_names')
    .values([...wanted.values()])
    .execute();
}

/** Nobody could let anybody in again. */
export async function refuseWithoutAdmin(tx: Kysely<Tables>, clock: Clock): Promise<void> {
  const users = await tx.selectFrom('users').select(['id', 'roles']).where('state', '=', 'active').execute();
  const admins = users.filter(({ roles }) => parseRoles(roles).includes('admin')).map(({ id }) => id);
  if (admins.length === 0) throw new ReeveError('LAST_ADMIN', { what: 'the last admin' });
  const hasTokens = await tx.selectFrom('tokens').select('id').limit(1).executeTakeFirst();
  if (!hasTokens) return;
  const usable = await tx
    .selectFrom('tokens')
    .select(['scopes', 'expires_at'])
    .where('user_id', 'in', admins)
    .where('revoked_at', 'is', null)
    .execute();
  const now = isoTime(clock);
  if (!usable.some(({ scopes, expires_at }) => isAdminScope(scopes) && (expires_at === null || expires_at > now))) {
    throw new ReeveError('LAST_ADMIN', { what: 'the last token of an admin' });
  }
}

const isAdminScope = (scopes: string): boolean => {
  const list = JSON.parse(scopes) as string[];
  return list.length === 0 || list.includes('admin');
};

const rightsText = ({ state, roles }: User): string => `${state} ${roles.toSorted().join(' ')}`;
const orNull = (text: string | undefined): string | null => text || null;
