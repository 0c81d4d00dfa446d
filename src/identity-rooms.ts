import type { Clock } from './clock.ts';
import { reason } from './errors.ts';
import { Doorkeeper } from './identity/doorkeeper.ts';
import { Sessions } from './identity/sessions.ts';
import { Tokens } from './identity/tokens.ts';
import { type RightsPicture, Users } from './identity/users.ts';
import type { Logger } from './log.ts';
import type { Connection } from './redis/connection.ts';
import type { Keyspace } from './redis/keys.ts';
import type { Scripts } from './redis/script.ts';
import type { Store } from './store/database.ts';

export interface IdentityRoomsOptions {
  readonly store: Store;
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly clock: Clock;
  readonly log: Logger;
  /** Which daemon this is: goes into audit rows. */
  readonly service: string;
  /** Whatever goes by what people may do. */
  readonly rights?: RightsPicture;
}

export interface IdentityRooms {
  readonly users: Users;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly doorkeeper: Doorkeeper;
}

/** Who there is, and who is in. */
export function createIdentityRooms(options: IdentityRoomsOptions): IdentityRooms {
  const { store, connection, keys, scripts, clock, log, service, rights } = options;
  const sessions = new Sessions({ connection, keys, scripts, store, clock, service });
  const users = new Users({
    store,
    clock,
    service,
    rights,
    onRightsChanged: async (user) => {
      try {
        await sessions.endAll({ id: user });
      } catch (error) {
        // Users and roles are read anew for each call, so that the sessions of one who is gone are dead in any case.
        log.warn('sessions could not be ended', { user, problem: reason(error) });
      }
    },
  });
  const tokens = new Tokens({ store, users, clock, service });
  return { users, tokens, sessions, doorkeeper: new Doorkeeper({ users, tokens, sessions }) };
}
