import type { RedisClient } from '../redis/connection.ts';
import type { AssetId } from '../redis/ids.ts';
import type { Keyspace } from '../redis/keys.ts';
import {
  addDigests,
  assetOf,
  type Digest,
  digestOf,
  NO_DIGEST,
  type StoredAsset,
  type Summary,
  summaryOf,
} from './asset.ts';
import { CATEGORIES } from './category.ts';
import { pacedMap } from './pace.ts';
import type { PathRecord, Paths } from './path-record.ts';
import { type SyncState, stateOf } from './state.ts';
import { recordDigest } from './writes.ts';

/** What the comparison of Redis with the registry's own digests found. */
export type Health =
  | { readonly outcome: 'sound' }
  | Damage
  /** The registry's own records are gone: list the source again and publish everything. */
  | { readonly outcome: 'lost'; readonly says: readonly string[] };

/** Keys were deleted or edited; repair() puts them right. */
export interface Damage {
  readonly outcome: 'damaged';
  readonly says: readonly string[];
  /** Assets whose hash is not what was published. */
  readonly ids: readonly AssetId[];
  /** Index, sets, order, digests or search are wrong: all of them are made anew. */
  readonly isStructural: boolean;
}

/**
 * Reads at most this many asset hashes in one check; a larger registry is looked at piece by piece, one piece per check.
 * The rest (which keys there are, index, sets, order, records) is compared in full every time.
 */
const MOST_HASHES = 2_000;
const CHUNK = 200;

type Texts = Readonly<Record<string, string>>;

/** A place in a large registry, kept from one check to the next. */
export interface Walk {
  next: number;
}

/** Cost: three hashes, three sets, three sorted sets, EXISTS of all assets and one HGETALL for each of a piece of them. */
export async function checkHealth(client: RedisClient, keys: Keyspace, walk: Walk): Promise<Health> {
  for (;;) {
    const before = await client.hgetall(keys.assetSyncState());
    const found = await look(client, keys, stateOf(before), walk);
    const after = stateOf(await client.hgetall(keys.assetSyncState()));
    // A publish in the middle would look like damage.
    if (after.generation === stateOf(before).generation) return found;
  }
}

async function look(client: RedisClient, keys: Keyspace, state: SyncState, walk: Walk): Promise<Health> {
  if (!state.last_commit_sha || !state.digest) return { outcome: 'lost', says: ['nothing was published yet'] };
  const rawPaths = await client.hgetall(keys.assetSyncPaths());
  if ((await totalOf(rawPaths)) !== state.paths_digest) {
    return { outcome: 'lost', says: [`${keys.assetSyncPaths()} is not what was published`] };
  }
  const served = servedPaths(await parsePaths(rawPaths));
  const says: string[] = [];
  const digests = await client.hgetall(keys.assetDigests());
  const areDigestsRight = addDigests(NO_DIGEST, digestsIn(digests)) === state.digest;
  if (!areDigestsRight) says.push(`${keys.assetDigests()} is not what was published`);
  const index = await client.hgetall(keys.assetIndex());
  const ids = [...served.keys()];
  const isPart = ids.length > MOST_HASHES;
  const from = isPart ? walk.next % ids.length : 0;
  const looked = isPart ? [...ids, ...ids].slice(from, from + MOST_HASHES) : ids;
  walk.next = isPart ? from + MOST_HASHES : 0;

  const { wrong, summaries } = areDigestsRight
    ? await edited(client, keys, looked, digests, index)
    : { wrong: ids, summaries: 0 };
  const damaged = [...new Set([...wrong, ...(isPart ? await absent(client, keys, ids) : [])])];
  if (damaged.length > 0) says.push(`${damaged.length} asset hashes were deleted or edited`);
  const structural = await wrongStructures(client, keys, ids, index, state);
  if (summaries > 0) structural.push(`${summaries} entries of ${keys.assetIndex()} were edited`);
  says.push(...structural);
  if (says.length === 0) return { outcome: 'sound' };
  const isStructural = structural.length > 0 || !areDigestsRight;
  return { outcome: 'damaged', says, ids: damaged, isStructural };
}

/** Which hashes are not as published, judged by every field they have; and which index entries say something else. */
async function edited(client: RedisClient, keys: Keyspace, ids: readonly AssetId[], digests: Texts, index: Texts) {
  const wrong: AssetId[] = [];
  let summaries = 0;
  for (let at = 0; at < ids.length; at += CHUNK) {
    const chunk = ids.slice(at, at + CHUNK);
    const hashes = await Promise.all(
      chunk.map((id) => client.hgetall(keys.assetMetadata(id)).catch((): Record<string, string> => ({}))),
    );
    chunk.forEach((id, place) => {
      const fields = hashes[place] ?? {};
      if (digestOf(fields) !== digests[id]) wrong.push(id);
      else if (index[id] !== JSON.stringify(summaryOf(fields as Record<keyof Summary, never>))) summaries++;
    });
  }
  return { wrong, summaries };
}

/** Many keys are asked about at once; only where one is missing, each by itself. */
async function absent(client: RedisClient, keys: Keyspace, ids: readonly AssetId[]): Promise<AssetId[]> {
  const gone: AssetId[] = [];
  for (let at = 0; at < ids.length; at += CHUNK) {
    const chunk = ids.slice(at, at + CHUNK);
    const names = chunk.map((id) => keys.assetMetadata(id));
    if ((await client.exists(...names)) === chunk.length) continue;
    const there = await Promise.all(names.map((name) => client.exists(name)));
    gone.push(...chunk.filter((_, place) => there[place] === 0));
  }
  return gone;
}

/** Names of the collecting keys that do not fit the assets. A key of the wrong type fits nothing. */
async function wrongStructures(
  client: RedisClient,
  keys: Keyspace,
  ids: readonly string[],
  index: Texts,
  state: SyncState,
): Promise<string[]> {
  const wrong: string[] = [];
  const expected = new Set(ids);
  const categories = new Map<string, string>();
  const isIndexRight = Object.keys(index).length === ids.length && ids.every((id) => index[id] !== undefined);
  if (!isIndexRight) wrong.push(`${keys.assetIndex()} has other ids than were published`);
  await pacedMap(Object.entries(index), ([id, json]) => categories.set(id, categoryIn(json)));
  for (const category of CATEGORIES) {
    const mine = ids.filter((id) => categories.get(id) === category);
    const members = await client.smembers(keys.assetCategory(category)).catch(() => ['?']);
    const order = await client.zrange(keys.assetOrder(category), 0, '-1').catch(() => ['?']);
    for (const [key, found] of [
      [keys.assetCategory(category), members],
      [keys.assetOrder(category), order],
    ] as const) {
      const isRight =
        found.length === mine.length && found.every((id) => expected.has(id) && categories.get(id) === category);
      if (!isRight) wrong.push(`${key} has other ids than were published`);
    }
  }
  const { generation, words } = await client.hgetall(keys.assetSearchIndex()).catch((): Record<string, string> => ({}));
  const counts = generation
    ? await Promise.all([
        client.zcard(keys.assetSearchWords(generation)).catch(() => -1),
        client.hlen(keys.assetSearchDocs(generation)).catch(() => -1),
      ])
    : [0, 0];
  if (counts[0] !== Number(words ?? 0) || counts[1] !== ids.length)
    wrong.push('the search index is not what was published');
  if (state.synced_count !== ids.length) wrong.push('synced_count is wrong');
  return wrong;
}

function categoryIn(json: string): string {
  try {
    return String((JSON.parse(json) as { category?: unknown }).category);
  } catch {
    return '';
  }
}

const digestsIn = (digests: Texts): Digest[] =>
  Object.values(digests).map((digest) => (/^[0-9a-f]{32}$/.test(digest) ? digest : NO_DIGEST));

const totalOf = async (raw: Texts): Promise<Digest> =>
  addDigests(NO_DIGEST, await pacedMap(Object.entries(raw), ([path, json]) => recordDigest(path, json)));

export async function parsePaths(raw: Texts): Promise<Paths> {
  const paths = new Map<string, PathRecord>();
  await pacedMap(Object.entries(raw), ([path, json]) => {
    try {
      paths.set(path, JSON.parse(json) as PathRecord);
    } catch {
      // Somebody wrote it by hand: as good as not there.
    }
  });
  return paths;
}

/** Asset id → where it is served from. */
export function servedPaths(
  paths: Paths,
): ReadonlyMap<AssetId, { readonly path: string; readonly record: PathRecord }> {
  const served = new Map<AssetId, { path: string; record: PathRecord }>();
  for (const [path, record] of paths) if (record.id) served.set(record.id, { path, record });
  return served;
}

export const assetIn = (fields: Texts): StoredAsset | undefined =>
  fields.id === undefined ? undefined : assetOf(fields);
