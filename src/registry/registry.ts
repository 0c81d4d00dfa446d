import type { AssetId } from '../redis/ids.ts';
import type { StoredAsset } from './asset.ts';
import type { Blobs } from './blobs.ts';
import type { Hold } from './holds.ts';
import type { Known } from './plan.ts';
import type { Publication, Published } from './publish.ts';
import type { SyncState } from './state.ts';

/** What the daily check of Redis against the registry's own digest found. */
export type Health =
  | { readonly outcome: 'sound' }
  /** Keys were deleted or edited; repair() can put them right. */
  | { readonly outcome: 'damaged'; readonly says: readonly string[]; readonly ids: readonly AssetId[] }
  /** The registry's own records are gone: list the source again and publish everything. */
  | { readonly outcome: 'lost'; readonly says: readonly string[] };

export type Repaired =
  | { readonly outcome: 'repaired'; readonly ids: readonly AssetId[] }
  /** These blobs are neither served nor cached: fetch them, put them into the cache, call again. */
  | { readonly outcome: 'missing'; readonly shas: readonly string[] }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'stale' };

/** One namespace of assets, as the sync half uses it. */
export interface Registry {
  readonly namespace: string | undefined;
  readonly blobs: Blobs;
  state(): Promise<SyncState>;
  /** State, path records and holds, of one moment. */
  known(): Promise<Known>;
  getMany(ids: Iterable<AssetId>): Promise<ReadonlyMap<AssetId, StoredAsset>>;
  publish(publication: Publication): Promise<Published>;
  /** sync_status and last_error; refused silently when a newer sync has begun. */
  mark(status: {
    readonly sync_status: SyncState['sync_status'];
    readonly last_error?: string;
    readonly fence: number;
  }): Promise<void>;
  /** Compares Redis with the digest. Run it on every poll, before believing that nothing changed. */
  check(): Promise<Health>;
  /** Rewrites what check() found, from the blob cache, without asking the source. */
  repair(fence: number): Promise<Repaired>;
  /** Records a hold of a whole change (plan.held). */
  hold(hold: Hold): Promise<void>;
  holds(): Promise<readonly Hold[]>;
  /** Lets a held change through at the next sync. */
  release(id: string, by: string, reason: string): Promise<Hold | undefined>;
  /** A released hold waits for a sync, although the commit is unchanged. */
  hasReleased(): Promise<boolean>;
}
