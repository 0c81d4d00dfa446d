import { hash as sha } from 'node:crypto';
import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { addDigests, type Digest, digestOf, fieldsOf, NO_DIGEST, summaryOf } from './asset.ts';
import { CATEGORIES, type Category } from './category.ts';
import { timelineWrites } from './history-writes.ts';
import type { Fields } from './outbox.ts';
import { pacedMap } from './pace.ts';
import type { PathRecord } from './path-record.ts';
import type { Publication, PublishOptions } from './publish.ts';
import { type SearchWrites, searchWrites } from './search-writes.ts';
import type { SyncState } from './state.ts';
import { type Command, send, spread } from './transaction.ts';

/** One live key that collects many assets: changed in place, or copied, changed and swapped. */
export interface Structure {
  readonly live: string;
  readonly staged: string;
  readonly writes: (key: string) => Iterable<Command>;
  /** Not made of the assets alone: goes on from what it was, even when all else is made anew. */
  readonly isKept?: true;
}

/** Everything a publish writes, sorted by how it can be written. */
export interface Draft {
  readonly generation: number;
  readonly rebuild: boolean;
  readonly structures: readonly Structure[];
  readonly assets: readonly AssetWrite[];
  readonly removed: readonly Displaced[];
  readonly search: SearchWrites;
  /** What happened, one by one: told and noted as releases with the publish, or after a large one by way of the outbox. */
  readonly told: readonly Fields[];
  /** Few and small, whatever the size of the publish. */
  readonly rest: readonly Command[];
}

/** A live key that goes out of sight, and the name under which it waits to be freed. */
export interface Displaced {
  readonly live: string;
  readonly old: string;
}

/** The fields are made when they are sent: all at once they would fill the memory. */
export interface AssetWrite extends Displaced {
  readonly staged: string;
  /** Nothing is displaced: the id was not there before. */
  readonly isNew: boolean;
  readonly fields: () => string[];
}

export interface DraftOptions extends PublishOptions {
  readonly client: RedisClient;
  readonly state: SyncState;
  readonly publication: Publication;
  /** Make every structure anew from the puts, which then are all assets. */
  readonly rebuild: boolean;
}

const KEEP_CHANGED = 1000;
const KEEP_COMMITS = 1000;
const AT_ONCE = 1000;

export async function draftWrites(options: DraftOptions): Promise<Draft> {
  const { client, keys, state, publication, rebuild } = options;
  const { plan, fence } = publication;
  const generation = state.generation + 1;
  const number = String(fence);
  const touched = [...plan.puts.map(({ id }) => id), ...plan.removes];
  const [[seconds], old] = await Promise.all([client.time(), readOld(client, keys, touched, rebuild)]);
  const at = Number(seconds);

  const digests = new Map(
    await pacedMap(plan.puts, (asset) => [asset.id as string, digestOf(fieldsOf(asset))] as const),
  );
  const known = state.digest !== undefined && /^[0-9a-f]{32}$/.test(state.digest) ? state.digest : NO_DIGEST;
  const digest = rebuild
    ? addDigests(NO_DIGEST, digests.values())
    : addDigests(known, digests.values(), [...old.digests.values()]);
  const texts = await pacedMap(plan.paths, ([path, record]) => [path, record, JSON.stringify(record)] as const);
  const paths = pathWrites(texts, old.paths);
  const pathsDigest = addDigests(NO_DIGEST, await pacedMap(texts, ([path, , json]) => recordDigest(path, json)));
  const timelines = await timelineWrites({ client, keys, publication, generation, at });
  const search = await searchWrites({ client, keys, plan, generation, rebuild, at });
  const told = await eventFields(publication, generation, new Date(at * 1000).toISOString());

  const hash = (live: string, staged: string, sets: readonly string[], gone: readonly string[]): Structure => ({
    live,
    staged,
    writes: (key) => [...spread(['HDEL', key], gone, AT_ONCE), ...spread(['HSET', key], sets, 2 * AT_ONCE)],
  });
  const added = new Set<string>(plan.changes.flatMap(({ op, id }) => (op === 'added' ? [id] : [])));
  const categories = new Map(plan.puts.map(({ id, category }) => [id as string, category]));
  return {
    generation,
    rebuild,
    structures: [
      hash(
        keys.assetIndex(),
        keys.assetStageIndex(number),
        (await pacedMap(plan.puts, (asset) => [asset.id, JSON.stringify(summaryOf(asset))])).flat(),
        plan.removes,
      ),
      hash(keys.assetDigests(), keys.assetStageDigests(number), [...digests].flat(), plan.removes),
      { ...hash(keys.assetVersions(), keys.assetStageVersions(number), timelines, []), isKept: true },
      hash(keys.assetSyncPaths(), keys.assetStagePaths(number), paths.sets, paths.gone),
      hash(keys.assetSyncErrors(), keys.assetStageErrors(number), paths.errors, paths.errorsGone),
      ...CATEGORIES.flatMap((category) => membership(keys, number, category, touched, categories)),
    ],
    assets: await pacedMap(plan.puts, (asset) => ({
      live: keys.assetMetadata(asset.id),
      staged: keys.assetStage(number, asset.id),
      old: keys.assetStageOld(number, asset.id),
      isNew: added.has(asset.id),
      fields: () => Object.entries(fieldsOf(asset)).flat(),
    })),
    removed: plan.removes.map((id) => ({ live: keys.assetMetadata(id), old: keys.assetStageOld(number, id) })),
    search,
    told,
    rest: [
      ...changedWrites(
        keys,
        plan.changes.map(({ id }) => id),
      ),
      ...holdWrites(keys, publication),
      ...stateWrites(keys, publication, { at, generation, digest, pathsDigest }),
    ],
  };
}

interface Old {
  readonly digests: ReadonlyMap<string, Digest>;
  readonly paths: Readonly<Record<string, string>>;
}

async function readOld(
  client: RedisClient,
  keys: Keyspace,
  touched: readonly string[],
  rebuild: boolean,
): Promise<Old> {
  if (rebuild) return { digests: new Map(), paths: {} };
  const paths = await client.hgetall(keys.assetSyncPaths());
  const values = (await send(client, spread(['HMGET', keys.assetDigests()], touched, AT_ONCE))).flat() as (
    | string
    | null
  )[];
  const found = touched.flatMap((id, at): [string, Digest][] => (values[at] ? [[id, values[at]]] : []));
  return { digests: new Map(found), paths };
}

/** A member goes from every category it is not of, so that a change of category leaves nothing behind. */
function membership(
  keys: Keyspace,
  number: string,
  category: Category,
  touched: readonly string[],
  categories: ReadonlyMap<string, Category>,
): Structure[] {
  const here = touched.filter((id) => categories.get(id) === category);
  const elsewhere = touched.filter((id) => categories.get(id) !== category);
  return [
    {
      live: keys.assetCategory(category),
      staged: keys.assetStageCategory(number, category),
      writes: (key) => [...spread(['SREM', key], elsewhere, AT_ONCE), ...spread(['SADD', key], here, AT_ONCE)],
    },
    {
      live: keys.assetOrder(category),
      staged: keys.assetStageOrder(number, category),
      writes: (key) => [
        ...spread(['ZREM', key], elsewhere, AT_ONCE),
        ...spread(
          ['ZADD', key],
          here.flatMap((id) => ['0', id]),
          2 * AT_ONCE,
        ),
      ],
    },
  ];
}

function pathWrites(
  paths: readonly (readonly [path: string, record: PathRecord, json: string])[],
  old: Readonly<Record<string, string>>,
) {
  const sets: string[] = [];
  const errors: string[] = [];
  const errorsGone: string[] = [];
  for (const [path, record, json] of paths) {
    if (old[path] === json) continue;
    sets.push(path, json);
    if (isError(record))
      errors.push(path, JSON.stringify({ status: record.status, since: record.since, ...record.problem }));
    else if (old[path] !== undefined) errorsGone.push(path);
  }
  const listed = new Set(paths.map(([path]) => path));
  const gone = Object.keys(old).filter((path) => !listed.has(path));
  return { sets, gone, errors, errorsGone: [...errorsGone, ...gone] };
}

const isError = ({ status }: PathRecord): boolean => status === 'bad' || status === 'conflict' || status === 'held';

/** Of one path record, as it stands in Redis. */
export const recordDigest = (path: string, json: string): Digest => sha('sha256', `${path}\0${json}`).slice(0, 32);

/** The form of asset:sync:events: op, id, blobs, commit. */
function eventFields({ plan, source, author }: Publication, generation: number, timestamp: string) {
  return pacedMap(plan.changes, (change): Record<string, string> => {
    const known = Object.entries(change).filter(([, value]) => value !== undefined);
    return {
      ...Object.fromEntries(known.map(([name, value]) => [name, String(value)])),
      commit: plan.commit,
      generation: String(generation),
      ...(author && { author }),
      timestamp,
      source,
    };
  });
}

const changedWrites = (keys: Keyspace, ids: readonly string[]): Command[] =>
  ids.length === 0
    ? []
    : [
        ['RPUSH', keys.assetSyncChanged(), ...ids.slice(-KEEP_CHANGED)],
        ['LTRIM', keys.assetSyncChanged(), String(-KEEP_CHANGED), '-1'],
      ];

const holdWrites = (keys: Keyspace, { plan }: Publication): Command[] => [
  ['DEL', keys.assetSyncHolds()],
  ...spread(
    ['HSET', keys.assetSyncHolds()],
    plan.holds.flatMap((hold) => [hold.id, JSON.stringify(hold)]),
    AT_ONCE,
  ),
];

interface Totals {
  readonly at: number;
  readonly generation: number;
  readonly digest: Digest;
  readonly pathsDigest: Digest;
}

function stateWrites(keys: Keyspace, { plan, fence, configFingerprint }: Publication, totals: Totals): Command[] {
  const records = [...plan.paths.values()];
  const wrong = records.filter(isError);
  const key = keys.assetSyncState();
  const fields = {
    last_sync_time: totals.at,
    last_commit_sha: plan.commit,
    synced_count: records.filter(({ id }) => id !== undefined).length,
    sync_status: 'idle',
    config_fingerprint: configFingerprint,
    digest: totals.digest,
    paths_digest: totals.pathsDigest,
    generation: totals.generation,
    fence,
    error_count: wrong.length,
    degraded: wrong.some(({ id }) => id !== undefined),
  };
  const published = JSON.stringify({ commit: plan.commit, generation: totals.generation, at: totals.at });
  return [
    ['RPUSH', keys.assetSyncCommits(), published],
    ['LTRIM', keys.assetSyncCommits(), String(-KEEP_COMMITS), '-1'],
    ['HDEL', key, 'last_error'],
    ['HSET', key, ...Object.entries(fields).flatMap(([name, value]) => [name, String(value)])],
  ];
}
