import { createPace } from '../clock.ts';
import type { AssetId } from '../redis/ids.ts';
import type { StoredAsset } from './asset.ts';
import type { Guards } from './guards.ts';
import type { Hold } from './holds.ts';
import type { Parsed } from './manifest.ts';
import { MAX_MANIFEST_BYTES } from './manifest-text.ts';
import type { PathRecord, Paths } from './path-record.ts';
import { PlanDraft } from './plan-draft.ts';

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
  /** When it was read, by the Redis server's clock, in Unix seconds. */
  readonly at: number;
  readonly commit: string | undefined;
  readonly configFingerprint: string | undefined;
  readonly paths: Paths;
  readonly holds: ReadonlyMap<string, Hold>;
}

export interface PlanInput {
  readonly known: Known;
  readonly listing: Listing;
  /** The outcome for every path that pathsToParse() named; one whose blob could not be had is left out and stays as it is. */
  readonly parsed: ReadonlyMap<string, Parsed>;
  /** What is served now under the ids of the parsed assets. */
  readonly current: ReadonlyMap<string, StoredAsset>;
  readonly guards: Guards;
}

export type ChangeOp = 'added' | 'changed' | 'moved' | 'removed' | 'repaired';

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
  readonly puts: readonly StoredAsset[];
  readonly removes: readonly AssetId[];
  readonly changes: readonly Change[];
  /** Every candidate of the listing, and every held deletion. */
  readonly paths: ReadonlyMap<string, PathRecord>;
  /** Changes kept back, each on its own; the rest goes ahead. */
  readonly holds: readonly Hold[];
  /** Set when the change as a whole waits for a person: do not publish, record it with registry.hold(). */
  readonly held?: Hold;
}

/**
 * Which paths must be parsed before a plan can be made: new and changed ones, those in conflict or held (they may win now),
 * and all of them when the fingerprint differs. Their blobs come from the blob cache where it has them.
 */
export function pathsToParse(known: Known, listing: Listing, configFingerprint: string): readonly string[] {
  const isAll = known.configFingerprint !== configFingerprint;
  const needs = (path: string, { sha, kind, size }: ListedFile) => {
    if (kind !== 'file' || size > MAX_MANIFEST_BYTES) return false;
    const record = known.paths.get(path);
    return isAll || record?.sha !== sha || record.status === 'conflict' || record.status === 'held';
  };
  return [...listing.entries].filter(([path, file]) => needs(path, file)).map(([path]) => path);
}

/** The listing that the registry remembers, for a repair or the release of a hold without asking the source. */
export function rememberedListing({ commit = '', paths }: Known): Listing {
  const listed = [...paths].flatMap(([path, { sha }]): [string, ListedFile][] =>
    sha ? [[path, { sha, kind: 'file', size: 0 }]] : [],
  );
  return { commit, complete: true, entries: new Map(listed) };
}

/** Pure, but for its pauses: what is known + a listing + parsed files → what changes, what is wrong, what must wait for a person. */
export async function makePlan(input: PlanInput): Promise<Plan> {
  const pace = createPace();
  const draft = new PlanDraft(input);
  await draft.claim(pace);
  draft.remove();
  await pace();
  draft.holdWidening();
  draft.holdDeletions();
  await pace();
  return draft.finish();
}
