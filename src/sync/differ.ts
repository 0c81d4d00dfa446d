import picomatch from 'picomatch';
import { createPace } from '../clock.ts';
import type { PathRecord } from '../registry/path-record.ts';
import type { Listing as Candidates, ListedFile } from '../registry/plan.ts';
import type { Entry, Listing } from './source.ts';

/** What one listing has and another has not, by path. */
export interface Difference {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** Pure: the files known before and those of a new listing. */
export function differ(
  known: ReadonlyMap<string, Pick<PathRecord, 'sha'>>,
  now: ReadonlyMap<string, { readonly sha: string }>,
): Difference {
  const added: string[] = [];
  const changed: string[] = [];
  for (const [path, { sha }] of now) {
    const before = known.get(path)?.sha;
    if (before === undefined) added.push(path);
    else if (before !== sha) changed.push(path);
  }
  const removed = [...known].filter(([path, { sha }]) => sha !== undefined && !now.has(path)).map(([path]) => path);
  return { added, changed, removed };
}

export const isSame = ({ added, changed, removed }: Difference): boolean =>
  added.length + changed.length + removed.length === 0;

const KINDS: Readonly<Record<string, ListedFile['kind']>> = { '120000': 'symlink', '160000': 'submodule' };

/** The files of a listing that may be manifests. A source lists everything or fails, so the listing is complete. */
export async function candidates({ commit, entries }: Listing, include: readonly string[]): Promise<Candidates> {
  const isWanted = picomatch([...include], { dot: true });
  const found = new Map<string, ListedFile>();
  const pace = createPace();
  for (const entry of entries) {
    if (isWanted(entry.path)) found.set(entry.path, listed(entry));
    const pause = pace();
    if (pause) await pause;
  }
  let paths: ReadonlySet<string> | undefined;
  return {
    commit,
    complete: true,
    entries: found,
    hasFile: (path) => {
      paths ??= new Set(entries.map((entry) => entry.path));
      return paths.has(path);
    },
  };
}

const listed = ({ sha, mode, size }: Entry): ListedFile => ({ sha, kind: KINDS[mode] ?? 'file', size });
