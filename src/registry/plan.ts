import type { AssetId } from '../redis/ids.ts';
import type { Asset, StoredAsset } from './asset.ts';
import type { Guards } from './guards.ts';
import type { Hold } from './holds.ts';
import type { Parsed } from './manifest.ts';
import type { PathRecord, Paths } from './path-record.ts';

/** The candidate files of one commit. Deletions follow only from a listing that is proven complete. */
export interface Listing {
  readonly commit: string;
  readonly complete: boolean;
  /** Candidates only (paths that match the globs); directories are left out. */
  readonly entries: ReadonlyMap<string, ListedFile>;
  /** Whether any file is at this path, candidate or not: to check runtime.entry. Left out: not checked. */
  readonly hasFile?: (path: string) => boolean;
  /** The commit does not descend from the one published before: a force-push, a rewind, another branch. */
  readonly rewritesHistory?: boolean;
}

export interface ListedFile {
  readonly sha: string;
  readonly kind: 'file' | 'symlink' | 'submodule';
  readonly size: number;
}

/** What the registry holds now, as registry.known() reads it. */
export interface Known {
  readonly commit: string | undefined;
  readonly configFingerprint: string | undefined;
  readonly paths: Paths;
  readonly holds: ReadonlyMap<string, Hold>;
}

export interface PlanInput {
  readonly known: Known;
  readonly listing: Listing;
  /** The outcome for every path that pathsToParse() named; a path whose blob could not be had is left out and stays as it is. */
  readonly parsed: ReadonlyMap<string, Parsed>;
  /** Current form of assets in `known`, for those whose path or id changes; see registry.getMany(). */
  readonly current: ReadonlyMap<AssetId, StoredAsset>;
  readonly guards: Guards;
}

export type ChangeOp = 'added' | 'changed' | 'moved' | 'removed';

export interface Change {
  readonly op: ChangeOp;
  readonly id: AssetId;
  readonly path: string;
  readonly from_path?: string;
  readonly old_blob?: string;
  readonly new_blob?: string;
  readonly version?: string;
  /** Of a removed asset: the id that the same file has now. */
  readonly successor?: AssetId;
}

/** What a publish will do. Nothing has been written yet: `--dry-run` shows exactly this. */
export interface Plan {
  readonly commit: string;
  readonly puts: readonly Asset[];
  readonly removes: readonly AssetId[];
  readonly changes: readonly Change[];
  /** Every candidate of the listing, and every held deletion. */
  readonly paths: ReadonlyMap<string, PathRecord>;
  readonly holds: readonly Hold[];
  /** Set when the change as a whole waits for a person: do not publish, record it with registry.hold(). */
  readonly held?: Hold;
}

/**
 * Which paths must be parsed before a plan can be made: new and changed ones, those in conflict (they may win now) or held,
 * and all of them when the fingerprint differs. Their blobs come from the blob cache where it has them.
 */
export declare function pathsToParse(known: Known, listing: Listing, configFingerprint: string): readonly string[];

/** Pure: old state + listing + parsed files → what changes, what is wrong, what must wait for a person. */
export declare function makePlan(input: PlanInput): Plan;

/** The listing that the registry remembers, for a repair or the release of a hold without asking the source. */
export declare function rememberedListing(known: Known): Listing;
