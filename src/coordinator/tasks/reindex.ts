import type { Logger } from '../../log.ts';
import { type KeyspaceOptions, keyReader } from '../../redis/keys.ts';
import { type Service, service } from '../../service.ts';
import { spelling } from './aliases.ts';
import { reindex } from './scripts.ts';
import type { TaskStore } from './task-store.ts';

export interface ReindexOptions {
  readonly store: TaskStore;
  readonly keyspace: KeyspaceOptions;
  readonly log: Logger;
}

const SCANNED = 5_000;

/**
 * The list of all tasks was a set once, without an order, and is one still where an older daemon wrote it: it is written
 * anew before anything reads it. Where somebody left something else there, the tasks' own records say which there are.
 */
export function reindexing(options: ReindexOptions): Service {
  return service('task index', async () => {
    const entered = await reindexOnce(options);
    if (entered > 0) options.log.info('the list of all tasks is written anew', { tasks: entered });
    return undefined;
  });
}

/** Answers with how many tasks were entered; none, if the list is as it should be. */
export async function reindexOnce({ store, keyspace }: Omit<ReindexOptions, 'log'>): Promise<number> {
  const { connection, keys, scripts } = store;
  const redis = connection.commands;
  const type = await redis.type(keys.knownTasks());
  if (type === 'zset' || type === 'none') return 0;
  const ids = type === 'set' ? await redis.smembers(keys.knownTasks()) : await recorded(store, keyspace);
  return scripts.run(reindex, {}, { tasks: ids.sort().map((id) => [id, spelling(id)]) });
}

async function recorded({ connection, project }: TaskStore, keyspace: KeyspaceOptions): Promise<string[]> {
  const redis = connection.commands;
  if (!('scan' in redis)) return [];
  const explain = keyReader(keyspace);
  const ids = new Set<string>();
  let cursor = '0';
  do {
    const [next, found] = await redis.scan(cursor, 'MATCH', `${project}:coord:task:*`, 'COUNT', SCANNED);
    for (const key of found) {
      const explained = explain(key);
      if (explained?.name === 'taskRecord') ids.add(explained.parts.task as string);
    }
    cursor = next;
  } while (cursor !== '0');
  return [...ids];
}
