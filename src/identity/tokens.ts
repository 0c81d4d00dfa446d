import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { recordChange } from '../audit/intake.ts';
import { type Clock, isoTime } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Store } from '../store/database.ts';
import type { TokenRow } from '../store/schema.ts';
import { ACCESS_NAMES, type Access, type Role } from './permissions.ts';
import { parseRoles } from './user.ts';
import { refuseWithoutAdmin, type Users } from './users.ts';

export interface TokensOptions {
  readonly store: Store;
  readonly users: Users;
  readonly clock: Clock;
  readonly service: string;
}

/** A token as people may see it: all but the token itself. */
export interface Token {
  readonly token_id: string;
  readonly user: string;
  readonly label: string;
  /** What it is narrowed to; empty: everything its user may do. */
  readonly scopes: readonly Access[];
  readonly created_at: string;
  readonly created_by: string;
  readonly expires_at?: string;
  readonly revoked_at?: string;
  readonly last_used_at?: string;
  readonly state: 'live' | 'expired' | 'revoked';
}

/** Whom a token stands for, with the roles of this moment. */
export interface Bearer {
  readonly tokenId: string;
  readonly user: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly scopes: readonly Access[];
  readonly expiresAt: string | null;
}

export interface NewToken {
  readonly user: string;
  readonly label?: string | undefined;
  readonly scopes?: readonly Access[] | undefined;
  readonly expiresInMs?: number | undefined;
  readonly by: string;
}

const PREFIX = 'reeve_';
const SECRET_BYTES = 32;
/** How exact `last_used_at` is: a row per call would cost more than the calls. */
const USED_EVERY_MS = 60_000;
const scopesSchema = z.array(z.enum(ACCESS_NAMES));

/** API tokens. Only their hashes are kept; a token is shown once, when it is made. */
export class Tokens {
  readonly #options: TokensOptions;
  readonly #usedAt = new Map<string, number>();
  #existed = false;

  constructor(options: TokensOptions) {
    this.#options = options;
  }

  /** Whether one was ever made. From then on every call needs one, also after the last was revoked or ran out. */
  async exist(): Promise<boolean> {
    if (this.#existed) return true;
    const found = await this.#options.store.db.selectFrom('tokens').select('id').limit(1).executeTakeFirst();
    this.#existed = found !== undefined;
    return this.#existed;
  }

  /** What exist() said last, for whom it is too late to ask. */
  get didExist(): boolean {
    return this.#existed;
  }

  async create({ user: name, label = '', scopes = [], expiresInMs, by }: NewToken) {
    const { store, users, clock, service } = this.#options;
    const user = await users.get(name);
    if (user.state === 'removed') throw new ReeveError('USER_REMOVED', { user: user.id });
    const first = !(await this.exist());
    const secret = `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64url')}`;
    const created_at = isoTime(clock);
    const expires_at = expiresInMs === undefined ? null : new Date(clock.now() + expiresInMs).toISOString();
    const row: TokenRow = {
      id: `tok-${randomBytes(6).toString('hex')}`,
      user_id: user.id,
      label,
      hash: hashOf(secret),
      scopes: JSON.stringify(scopes),
      created_at,
      created_by: by,
      expires_at,
      revoked_at: null,
      last_used_at: null,
    };
    await store.db.transaction().execute(async (tx) => {
      await tx.insertInto('tokens').values(row).execute();
      // The first one closes the door: it must open it again.
      await refuseWithoutAdmin(tx, clock);
      const detail = { user: user.id, label, scopes, expires_at };
      await recordChange(tx, clock, service, {
        action: 'token.create',
        subject: `token:${row.id}`,
        to: 'live',
        detail,
      });
    });
    this.#existed = true;
    return { token: secret, first, ...toToken(row, clock.now()) };
  }

  list(user?: string): Promise<Token[]> {
    const { store, clock } = this.#options;
    return listTokens(store, clock, user);
  }

  async revoke(id: string): Promise<Token> {
    const { store, clock, service } = this.#options;
    const row = await store.db.transaction().execute(async (tx) => {
      const found = await tx.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirst();
      if (!found) throw new ReeveError('TOKEN_UNKNOWN', { token: id });
      if (found.revoked_at !== null) return found;
      const revoked_at = isoTime(clock);
      await tx.updateTable('tokens').set({ revoked_at }).where('id', '=', id).execute();
      await refuseWithoutAdmin(tx, clock);
      const subject = `token:${id}`;
      await recordChange(tx, clock, service, { action: 'token.revoke', subject, from: 'live', to: 'revoked' });
      return { ...found, revoked_at };
    });
    return toToken(row, clock.now());
  }

  /** Whom this token stands for now: read anew for each call, so that a removed role, user or token is gone at once. */
  async bearerOf(secret: string): Promise<Bearer | undefined> {
    if (!secret.startsWith(PREFIX)) return undefined;
    const { store, clock } = this.#options;
    const row = await store.db
      .selectFrom('tokens')
      .innerJoin('users', 'users.id', 'tokens.user_id')
      .select(['tokens.id', 'users.id as user', 'users.name', 'users.roles', 'tokens.scopes', 'tokens.expires_at'])
      .where('tokens.hash', '=', hashOf(secret))
      .where('tokens.revoked_at', 'is', null)
      .where('users.state', '=', 'active')
      .executeTakeFirst();
    if (!row || (row.expires_at !== null && row.expires_at <= isoTime(clock))) return undefined;
    await this.#used(row.id);
    const { id: tokenId, user, name, roles, scopes, expires_at: expiresAt } = row;
    return { tokenId, user, name, roles: parseRoles(roles), scopes: parseScopes(scopes), expiresAt };
  }

  async #used(id: string): Promise<void> {
    const { store, clock } = this.#options;
    const now = clock.now();
    if (now - (this.#usedAt.get(id) ?? Number.NEGATIVE_INFINITY) < USED_EVERY_MS) return;
    this.#usedAt.set(id, now);
    await store.db
      .updateTable('tokens')
      .set({ last_used_at: isoTime(clock) })
      .where('id', '=', id)
      .execute();
  }
}

export async function listTokens({ db }: Store, clock: Clock, user?: string): Promise<Token[]> {
  const all = db.selectFrom('tokens').selectAll().orderBy('created_at').orderBy('id');
  const rows = await (user === undefined ? all : all.where('user_id', '=', user)).execute();
  return rows.map((row) => toToken(row, clock.now()));
}

/** A token is 256 random bits: a fast hash is as good as a slow one, and every call pays for it. */
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

const parseScopes = (text: string): Access[] => scopesSchema.parse(JSON.parse(text));

function toToken(row: TokenRow, nowMs: number): Token {
  const { id, user_id, label, scopes, created_at, created_by, expires_at, revoked_at, last_used_at } = row;
  const isExpired = expires_at !== null && Date.parse(expires_at) <= nowMs;
  return {
    token_id: id,
    user: user_id,
    label,
    scopes: parseScopes(scopes),
    created_at,
    created_by,
    ...(expires_at !== null && { expires_at }),
    ...(revoked_at !== null && { revoked_at }),
    ...(last_used_at !== null && { last_used_at }),
    state: revoked_at !== null ? 'revoked' : isExpired ? 'expired' : 'live',
  };
}
