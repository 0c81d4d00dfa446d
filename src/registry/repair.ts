import type { AssetId } from '../redis/ids.ts';
import type { StoredAsset } from './asset.ts';
import type { Blobs } from './blobs.ts';
import { type Health, servedPaths } from './health.ts';
import type { ParsePool } from './parse-pool.ts';
import { type PathRecord, servedSha } from './path-record.ts';
import type { Known } from './plan.ts';
import { type PublishOptions, publish } from './publish.ts';

export type Repaired =
  | { readonly outcome: 'sound' }
  | { readonly outcome: 'repaired'; readonly ids: readonly AssetId[]; readonly says: readonly string[] }
  /** These blobs are not in the cache: fetch them, put them there, call again. */
  | { readonly outcome: 'missing'; readonly shas: readonly string[] }
  /** The registry's own records are gone: list the source and publish everything. */
  | { readonly outcome: 'lost'; readonly says: readonly string[] }
  /** Someone else publishes: check again later. */
  | { readonly outcome: 'stale' };

export interface RepairOptions {
  readonly publishing: PublishOptions;
  readonly pool: ParsePool;
  readonly blobs: Blobs;
  readonly check: () => Promise<Health>;
  readonly known: () => Promise<Known>;
  readonly getMany: (ids: Iterable<string>) => Promise<ReadonlyMap<string, StoredAsset>>;
  readonly fence: number;
}

/** Puts back what somebody deleted or edited: damaged hashes from the blob cache, wrong collections from all assets. */
export async function repair(options: RepairOptions): Promise<Repaired> {
  const health = await options.check();
  if (health.outcome !== 'damaged') return health;
  const { ids, isStructural, says } = health;
  const known = await options.known();
  const served = servedPaths(known.paths);
  const damaged = new Map(ids.flatMap((id) => (served.has(id) ? [[id, served.get(id)!] as const] : [])));
  const restored = await fromBlobs(options, damaged);
  if (restored.missing) return { outcome: 'missing', shas: restored.missing };
  const sound = isStructural ? [...served.keys()].filter((id) => !damaged.has(id)) : [];
  const untouched = [...(await options.getMany(sound)).values()];
  const published = await publish(
    options.publishing,
    {
      plan: {
        commit: known.commit!,
        puts: [...restored.assets, ...untouched],
        removes: [],
        changes: restored.assets.map(({ id, github_path, github_sha }) => ({
          op: 'repaired',
          id,
          path: github_path,
          new_blob: github_sha,
        })),
        paths: known.paths,
        holds: [...known.holds.values()],
      },
      source: 'repair',
      previousCommit: known.commit,
      fence: options.fence,
      configFingerprint: known.configFingerprint ?? '',
    },
    isStructural,
  );
  return published.outcome === 'stale'
    ? { outcome: 'stale' }
    : { outcome: 'repaired', ids: [...damaged.keys()].sort(), says };
}

type FromBlobs =
  | { readonly assets: readonly StoredAsset[]; readonly missing?: undefined }
  | { readonly missing: readonly string[] };
type Served = ReadonlyMap<AssetId, { readonly path: string; readonly record: PathRecord }>;

async function fromBlobs({ blobs, pool }: RepairOptions, served: Served): Promise<FromBlobs> {
  const wanted = [...served].map(([id, { path, record }]) => ({ id, path, record, sha: servedSha(record) ?? '' }));
  const bytes = await blobs.get(wanted.map(({ sha }) => sha).filter(Boolean));
  const missing = wanted.filter(({ sha }) => !bytes.has(sha)).map(({ sha }) => sha);
  if (missing.length > 0) return { missing };
  const parsed = await pool.parse(wanted.map(({ path, sha }) => ({ path, sha, bytes: bytes.get(sha)! })));
  const assets = parsed.flatMap((one, at): StoredAsset[] => {
    const { created_at = 0, updated_at = 0 } = wanted[at]!.record;
    return one.outcome === 'ok' ? [{ ...one.asset, created_at, updated_at }] : [];
  });
  return { assets };
}
