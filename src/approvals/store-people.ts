import { z } from 'zod';
import type { Store } from '../store/database.ts';
import type { People, Person } from './people.ts';

export interface StorePeopleOptions {
  readonly store: Store;
  /** Groups of the configuration: for policies a group is one more role of its members. */
  readonly groups: () => Readonly<Record<string, readonly string[]>>;
}

const rolesSchema = z.array(z.string());
/** Whoever reaches the daemon on its own machine, until the first token is made; afterwards only with a token of its own. */
const LOCAL = 'local';

/** The users of the store, read anew for every decision. */
export function storePeople({ store, groups }: StorePeopleOptions): People {
  const all = async (): Promise<Person[]> => {
    const { db } = store;
    const [users, names, token, localToken] = await Promise.all([
      db.selectFrom('users').selectAll().execute(),
      db.selectFrom('user_names').selectAll().where('kind', '=', 'alias').execute(),
      db.selectFrom('tokens').select('id').limit(1).executeTakeFirst(),
      db.selectFrom('tokens').select('id').where('user_id', '=', LOCAL).limit(1).executeTakeFirst(),
    ]);
    const aliases = Map.groupBy(names, ({ user_id }) => user_id);
    return users.map(({ id, name, manager, roles: text, state }) => {
      const roles = rolesSchema.parse(JSON.parse(text));
      const memberOf = Object.entries(groups()).filter(([, members]) => members.includes(id));
      return {
        id,
        name,
        kind: kindOf(roles),
        roles: [...roles, ...memberOf.map(([group]) => group)],
        mayHaveVoted: state === 'active',
        isActive: state === 'active' && !(id === LOCAL && token && !localToken),
        ...(manager !== null && { manager }),
        aliases: (aliases.get(id) ?? []).map((one) => one.name),
      };
    });
  };
  return { all, find: async (id) => (await all()).find((person) => person.id === id) };
}

/** One that is also an agent is no person: whoever has its token would vote. */
function kindOf(roles: readonly string[]): Person['kind'] {
  if (roles.includes('agent')) return 'agent';
  return roles.includes('system') ? 'system' : 'human';
}
