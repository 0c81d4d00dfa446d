import type { AssetId } from '../redis/ids.ts';

/** What became of a file that looks like a manifest. A file that is there is never treated as gone. */
export const PATH_STATUSES = ['ok', 'bad', 'conflict', 'skipped', 'held'] as const;
export type PathStatus = (typeof PATH_STATUSES)[number];

/** Something an author should know, with its place. Lines and columns count from 1. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  readonly hint?: string;
}

/** One value of asset:sync:paths: what the next listing is compared with, and all a repair needs. Times are Unix seconds. */
export interface PathRecord {
  readonly status: PathStatus;
  /** Blob SHA in the listing of the published commit; absent when the listing no longer has the path (a held deletion). */
  readonly sha?: string;
  /** The asset that is served from this path: its content, or when it is bad or held the last good one. */
  readonly id?: AssetId;
  /** Blob SHA of what is served, where it is not `sha`. */
  readonly good?: string;
  readonly created_at?: number;
  readonly updated_at?: number;
  /** Since when it has been bad, in conflict or held. */
  readonly since?: number;
  /** Why it is bad, in conflict, skipped or held. */
  readonly problem?: Problem;
  /** The hold that keeps it back. */
  readonly hold?: string;
  readonly warnings?: readonly Problem[];
}

export type Paths = ReadonlyMap<string, PathRecord>;

/** The blob an asset is served from. */
export const servedSha = ({ id, good, sha }: PathRecord): string | undefined => (id ? (good ?? sha) : undefined);
