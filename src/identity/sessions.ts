import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { actAs, currentActor } from '../actor.ts';
import { recordChange } from '../audit/intake.ts';
import { type Clock, isoTime } from '../clock.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import type { Store } from '../store/database.ts';
import { ACCESS_NAMES, type Access, rightsOf } from './permissions.ts';
import { beginSession, endSession, touch } from './scripts.ts';
import type { Bearer } from './tokens.ts';
import type { User } from './user.ts';

export interface SessionsOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly store: Store;
  readonly clock: Clock;
  /** Which daemon this is: goes into audit rows. */
  readonly service: string;
}

export interface Session {
  readonly session_id: string;
  readonly user: string;
  readonly created_at: string;
  readonly last_active: string;
  readonly expires_at: string;
  readonly ip: string;
  readonly user_agent: string;
}

/** What a session remembers of the token it began with. Roles are not among it: they are read anew. */
export interface Visitor {
  readonly sessionId: string;
  readonly user: string;
  readonly scopes: readonly Access[];
}

export const SESSION_SECONDS = 86_400;
const SECRET_BYTES = 32;
const TOUCH_EVERY_MS = 60_000;

const stored = z.object({
  user_id: z.string(),
  created_at: z.string(),
  last_active: z.string(),
  ip_address: z.string(),
  user_agent: z.string(),
  scopes: z
    .string()
    .default('[]')
    .transform((text) => z.array(z.enum(ACCESS_NAMES)).parse(JSON.parse(text))),
  expires_at: z.string(),
});

/**
 * Browser sessions. The browser keeps a secret that only this server makes; Redis knows its hash, which is the session's id:
 * who reads Redis, the log or the audit cannot use a session, and nobody can bring an id along.
 */
export class Sessions {
  readonly #options: SessionsOptions;
  readonly #touchedAt = new Map<string, number>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  async begin(
    { user, name, roles, scopes, expiresAt }: Bearer,
    from: { readonly ip: string; readonly userAgent: string },
  ): Promise<{ readonly secret: string; readonly session: Session }> {
    const { clock } = this.#options;
    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const id = idOf(secret);
    const at = isoTime(clock);
    const seconds = lifetime(clock.now(), expiresAt);
    const expires_at = new Date(clock.now() + seconds * 1000).toISOString();
    const fields = {
      user_id: user,
      user_name: name,
      roles: JSON.stringify(roles),
      permissions: JSON.stringify([...rightsOf(roles, scopes).access]),
      created_at: at,
      last_active: at,
      ip_address: from.ip,
      user_agent: from.userAgent,
      scopes: JSON.stringify(scopes),
      expires_at,
    };
    // Whoever it was before, from here on it is the one whose token it brought.
    await actAs({ ...currentActor(), user }, () => this.#begin(id, user, fields, seconds));
    const session = {
      session_id: id,
      user,
      created_at: at,
      last_active: at,
      expires_at,
      ip: from.ip,
      user_agent: from.userAgent,
    };
    return { secret, session };
  }

  /** Who has this secret, if it is that of a session that lives. */
  async visitorOf(secret: string): Promise<Visitor | undefined> {
    const id = idOf(secret);
    const found = await this.#read(id);
    if (!found || found.expires_at <= isoTime(this.#options.clock)) return undefined;
    await this.#touch(id);
    return { sessionId: id, user: found.user_id, scopes: found.scopes };
  }

  async list(user: string): Promise<Session[]> {
    const { connection, keys } = this.#options;
    const index = keys.userSessions(user);
    const sessions: Session[] = [];
    for (const id of await connection.commands.smembers(index)) {
      const found = await this.#read(id);
      if (!found) await connection.commands.srem(index, id);
      else {
        const { user_id, created_at, last_active, expires_at, ip_address: ip, user_agent } = found;
        sessions.push({ session_id: id, user: user_id, created_at, last_active, expires_at, ip, user_agent });
      }
    }
    return sessions.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1));
  }

  async #begin(id: string, user: string, fields: Readonly<Record<string, string>>, seconds: number): Promise<void> {
    const { connection, keys, scripts } = this.#options;
    const [session, index] = [keys.session(id), keys.userSessions(user)];
    if (connection.mode !== 'cluster') {
      const args = { session: id, user, fields, seconds, index_seconds: SESSION_SECONDS };
      await scripts.run(beginSession, { session, index }, args);
      return;
    }
    // They live in different slots there. The row first, then the index: a crash between leaves a row, or a name that leads nowhere.
    await this.#record('session.begin', id, user, '', 'active');
    await connection.commands.sadd(index, id);
    await connection.commands.expire(index, SESSION_SECONDS);
    await connection.commands.multi().hset(session, fields).expire(session, seconds).exec();
  }

  /** False if there was none. */
  async end(id: string): Promise<boolean> {
    const { connection, keys, scripts } = this.#options;
    const found = await this.#read(id);
    if (!found) return (await connection.commands.del(keys.session(id))) > 0;
    const [session, user] = [keys.session(id), found.user_id];
    const index = keys.userSessions(user);
    if (connection.mode !== 'cluster') return scripts.run(endSession, { session, index }, { session: id, user });
    await this.#record('session.end', id, user, 'active', 'ended');
    const ended = await connection.commands.del(session);
    await connection.commands.srem(index, id);
    return ended > 0;
  }

  #record(action: string, id: string, user: string, from: string, to: string): Promise<void> {
    const { store, clock, service } = this.#options;
    return recordChange(store.db, clock, service, { action, subject: `session:${id}`, from, to, detail: { user } });
  }

  endOf(secret: string): Promise<boolean> {
    return this.end(idOf(secret));
  }

  /** After a change of roles, or when the user is removed: whoever is in must come in anew. */
  async endAll({ id: user }: Pick<User, 'id'>): Promise<number> {
    const sessions = await this.list(user);
    for (const { session_id } of sessions) await this.end(session_id);
    return sessions.length;
  }

  async #read(id: string) {
    const { connection, keys } = this.#options;
    const fields = await connection.commands.hgetall(keys.session(id));
    const parsed = stored.safeParse(fields);
    return parsed.success ? parsed.data : undefined;
  }

  async #touch(id: string): Promise<void> {
    const { keys, scripts, clock } = this.#options;
    const now = clock.now();
    if (now - (this.#touchedAt.get(id) ?? Number.NEGATIVE_INFINITY) < TOUCH_EVERY_MS) return;
    if (this.#touchedAt.size > MOST_REMEMBERED) this.#touchedAt.clear();
    this.#touchedAt.set(id, now);
    await scripts.run(touch, { session: keys.session(id) }, { at: isoTime(clock) });
  }
}
const MOST_REMEMBERED = 10_000;

const idOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** No longer than the token it began with. */
function lifetime(nowMs: number, expiresAt: string | null): number {
  if (expiresAt === null) return SESSION_SECONDS;
  return Math.max(1, Math.min(SESSION_SECONDS, Math.floor((Date.parse(expiresAt) - nowMs) / 1000)));
}
