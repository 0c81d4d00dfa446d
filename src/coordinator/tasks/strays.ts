import type { EventLog } from '../../events/event-log.ts';
import type { Logger } from '../../log.ts';
import { isId } from '../../redis/ids.ts';
import { type KeyspaceOptions, keyReader } from '../../redis/keys.ts';
import type { TaskStore } from './task-store.ts';

export interface StraysOptions {
  readonly store: TaskStore;
  readonly keyspace: KeyspaceOptions;
  readonly events: EventLog;
  readonly log: Logger;
}

/** Keys looked at in one step. */
const SCANNED = 5_000;
const DAY_SECONDS = 86_400;

/** What plain clients leave under the name of the project: agents that entered themselves, and keys that are none of ours. */
export class Strays {
  readonly #options: StraysOptions;
  readonly #explain: ReturnType<typeof keyReader>;
  readonly #told = new Set<string>();
  #cursor = '0';

  constructor(options: StraysOptions) {
    this.#options = options;
    this.#explain = keyReader(options.keyspace);
  }

  /** A step through all keys of the project. Answers with those that are none of its keys and have not been told of. */
  async lookOnce(): Promise<string[]> {
    const { store, log, events } = this.#options;
    const redis = store.connection.commands;
    if (!('scan' in redis)) return [];
    const [next, found] = await redis.scan(this.#cursor, 'MATCH', `${store.project}:*`, 'COUNT', SCANNED);
    this.#cursor = next;
    const drifted: string[] = [];
    for (const key of found) {
      const explained = this.#explain(key);
      if (explained?.name === 'agent') await this.#enter(explained.parts.agent as string, key);
      if (explained || this.#told.has(key)) continue;
      this.#told.add(key);
      drifted.push(key);
      log.warn('a key under the name of the project is none of its keys', { key: key.slice(0, 200) });
      await events.append('drift_found', { key: key.slice(0, 200) });
    }
    return drifted;
  }

  async #enter(agent: string, key: string): Promise<void> {
    const { connection, keys } = this.#options.store;
    const redis = connection.commands;
    if ((await redis.ttl(key)) !== -1 || !isId('agent', agent)) return;
    await redis.expire(key, DAY_SECONDS);
    await redis.sadd(keys.knownAgents(), agent);
  }
}
