import { ReeveError } from '../errors.ts';
import { type Caller, isLoopback, type Knock, LOCAL } from './caller.ts';
import { rightsOf } from './permissions.ts';
import type { Sessions } from './sessions.ts';
import type { Tokens } from './tokens.ts';
import type { Users } from './users.ts';

export interface DoorkeeperOptions {
  readonly users: Users;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
}

/**
 * Finds out who calls, for every door. Until the first token is made, whoever reaches the daemon on its own machine is the admin
 * `local`; from then on every call must say who it is, and roles are read anew for each.
 */
export class Doorkeeper {
  readonly #options: DoorkeeperOptions;

  constructor(options: DoorkeeperOptions) {
    this.#options = options;
  }

  /** Whether callers need a token by now, as far as is known without asking. */
  get isClosed(): boolean {
    return this.#options.tokens.didExist;
  }

  needsTokens(): Promise<boolean> {
    return this.#options.tokens.exist();
  }

  /** The caller, or UNAUTHENTICATED. */
  async admit(knock: Knock): Promise<Caller> {
    const from = { ip: knock.ip, ...(knock.userAgent && { userAgent: knock.userAgent.slice(0, 512) }) };
    if (knock.authorization !== undefined) return { ...(await this.#byToken(knock.authorization)), ...from };
    if (knock.session !== undefined) {
      const visitor = await this.#bySession(knock.session);
      if (visitor) return { ...visitor, ...from };
    }
    if (await this.needsTokens()) {
      const why = knock.session === undefined ? 'it brought none' : 'its session has ended';
      throw new ReeveError('UNAUTHENTICATED', { why });
    }
    if (!isLoopback(knock.ip)) {
      throw new ReeveError('UNAUTHENTICATED', { why: `${knock.ip} is not this machine, and no token exists` });
    }
    return { ...LOCAL, ...from };
  }

  async #byToken(authorization: string): Promise<Caller> {
    const secret = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    const bearer = secret === undefined ? undefined : await this.#options.tokens.bearerOf(secret);
    if (!bearer) throw new ReeveError('UNAUTHENTICATED', { why: 'the one it brought is unknown, expired or revoked' });
    const { user: id, roles, scopes } = bearer;
    return { id, roles, ...rightsOf(roles, scopes) };
  }

  async #bySession(secret: string): Promise<Caller | undefined> {
    const { sessions, users } = this.#options;
    const visitor = await sessions.visitorOf(secret);
    const user = visitor && (await users.find(visitor.user));
    if (!visitor || user?.state !== 'active') return undefined;
    return {
      id: user.id,
      roles: user.roles,
      session: visitor.sessionId,
      ...rightsOf(user.roles, visitor.scopes),
    };
  }
}
