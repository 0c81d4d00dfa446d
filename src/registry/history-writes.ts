import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Release, TimelineEntry } from './history.ts';
import type { Fields } from './outbox.ts';
import { pacedMap } from './pace.ts';
import type { Publication } from './publish.ts';
import { type Command, send, spread } from './transaction.ts';

const KEEP_ENTRIES = 200;
const AT_ONCE = 500;

interface HistoryOptions {
  readonly client: RedisClient;
  readonly keys: Keyspace;
  readonly publication: Publication;
  readonly generation: number;
  readonly at: number;
}

/** What the changes of a publish add to the timelines: fields and values. */
export async function timelineWrites({ client, keys, publication, generation, at }: HistoryOptions): Promise<string[]> {
  const { plan, author } = publication;
  // A repair restores what was; it is no part of an asset's history.
  const changes = plan.changes.filter(({ op }) => op !== 'repaired');
  const ids = changes.map(({ id }) => id);
  const old = (await send(client, spread(['HMGET', keys.assetVersions()], ids, AT_ONCE))).flat() as (string | null)[];
  let index = -1;
  const entries = await pacedMap(changes, ({ op, id, path, version, new_blob, old_blob, successor }) => {
    index++;
    const entry: TimelineEntry = {
      op,
      at,
      generation,
      commit: plan.commit,
      path,
      ...(version && { version }),
      ...(new_blob ? { sha: new_blob } : old_blob && { sha: old_blob }),
      ...(successor && { successor }),
      ...(author && { author }),
    };
    return [id, JSON.stringify([...list<TimelineEntry>(old[index]), entry].slice(-KEEP_ENTRIES))];
  });
  return entries.flat();
}

/** What events of changes add to the releases of each version. */
export async function releaseWrites(
  client: RedisClient,
  keys: Keyspace,
  events: readonly Fields[],
): Promise<readonly Command[]> {
  const released = events.filter(({ id, version, new_blob }) => id && version && new_blob);
  const names = released.map(({ id, version }) => keys.assetVersion(id!, version!));
  const old = (await send(client, spread(['MGET'], names, AT_ONCE))).flat() as (string | null)[];
  const pairs = released.flatMap(({ new_blob: sha = '', commit = '', path = '', timestamp = '' }, place) => {
    const before = list<Release>(old[place]);
    // The same bytes again (moved, or back after a revert) are no new release.
    if (before.some((release) => release.sha === sha)) return [];
    const release: Release = { sha, commit, path, at: Math.floor(Date.parse(timestamp) / 1000) };
    return [names[place]!, JSON.stringify([...before, release])];
  });
  return [...spread(['MSET'], pairs, 2 * AT_ONCE)];
}

/** Whatever somebody wrote into the key, history goes on. */
export function list<T>(json: string | null | undefined): T[] {
  try {
    const parsed: unknown = JSON.parse(json ?? '[]');
    return Array.isArray(parsed) ? (parsed as T[]) : [];
  } catch {
    return [];
  }
}
