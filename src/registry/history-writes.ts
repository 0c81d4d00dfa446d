import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Release, TimelineEntry } from './history.ts';
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

/** What the changes of a publish add to the timelines, and to the releases of each version. */
export async function historyWrites({ client, keys, publication, generation, at }: HistoryOptions) {
  const { plan, author } = publication;
  // A repair restores what was; it is no part of an asset's history.
  const changes = plan.changes.filter(({ op }) => op !== 'repaired');
  const ids = changes.map(({ id }) => id);
  const released = changes.filter(({ version, new_blob }) => version && new_blob);
  const versionKeys = released.map(({ id, version }) => keys.assetVersion(id, version!));
  const [timelines, releases] = await Promise.all([
    send(client, spread(['HMGET', keys.assetVersions()], ids, AT_ONCE)),
    send(client, spread(['MGET'], versionKeys, AT_ONCE)),
  ]);
  const oldTimelines = timelines.flat() as (string | null)[];
  const oldReleases = releases.flat() as (string | null)[];
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
    return [id, JSON.stringify([...list<TimelineEntry>(oldTimelines[index]), entry].slice(-KEEP_ENTRIES))];
  });
  let place = -1;
  const pairs = await pacedMap(released, ({ new_blob, path }) => {
    place++;
    const before = list<Release>(oldReleases[place]);
    // The same bytes again (moved, or back after a revert) are no new release.
    if (before.some(({ sha }) => sha === new_blob)) return [];
    const release: Release = { sha: new_blob!, commit: plan.commit, path, at };
    return [versionKeys[place]!, JSON.stringify([...before, release])];
  });
  const releaseCommands: Command[] = [...spread(['MSET'], pairs.flat(), 2 * AT_ONCE)];
  return { timelines: entries.flat(), releases: releaseCommands };
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
