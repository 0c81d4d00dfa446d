import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import type { People, Person } from './people.ts';
import { stand } from './scripts.ts';

export interface StandingOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly people: People;
}

/**
 * What people may vote as, where scripts can see it: a vote is counted by it when it is cast and again when the task is
 * handed out. The store decides; this is its picture, and one who is not in it has no vote that counts.
 */
export class Standing {
  readonly #options: StandingOptions;

  constructor(options: StandingOptions) {
    this.#options = options;
  }

  /** Draws the picture anew. Answers with whether it was another. */
  async mirrorOnce(): Promise<boolean> {
    const { scripts, keys, people } = this.#options;
    const everyone = await people.all();
    const isAble = ({ kind, mayHaveVoted }: Person) => kind === 'human' && mayHaveVoted;
    const able = everyone.filter(isAble).map(({ id, roles }) => [id, JSON.stringify(roles.toSorted())]);
    const gone = everyone.filter((person) => !isAble(person)).map(({ id }) => id);
    const where = { standing: keys.approvalStanding(), events: keys.events('approval') };
    return scripts.run(stand, where, { roles: Object.fromEntries(able), gone });
  }

  /** Somebody is about to have less rights: until the picture is drawn anew that one's votes do not count. */
  async suspend(person: string): Promise<void> {
    const { connection, keys } = this.#options;
    await connection.commands.hdel(keys.approvalStanding(), person);
  }
}
