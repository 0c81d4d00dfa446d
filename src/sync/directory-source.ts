import { randomUUID } from 'node:crypto';
import { lstat, mkdir, open, readdir, readFile, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import type { Clock } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import { blobSha } from '../registry/asset.ts';
import { type TreeItem, treeSha } from './git-tree.ts';
import { hostility } from './paths.ts';
import type { Blob, Change, Entry, Source, Written } from './source.ts';

export interface DirectorySourceOptions {
  readonly dir: string;
  readonly clock: Clock;
}

/** More than this is no folder of assets but someone's home. */
const MOST_ENTRIES = 100_000;

/**
 * A plain folder. Its "commit" is the SHA that Git would give to the whole folder, its files have Git's blob SHAs, so
 * a folder and a repository with the same content are the same to everyone else. Links are listed, never followed.
 */
export function directorySource({ dir, clock }: DirectorySourceOptions): Source {
  const seen = new Map<string, Seen>();
  let last: Snapshot | undefined;
  const look = async (signal: AbortSignal): Promise<Snapshot> => {
    try {
      if (!(await stat(dir)).isDirectory()) throw new Error('it is no folder');
      last = await snapshot(dir, { seen, now: clock.now() }, signal);
      return last;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ReeveError) throw error;
      throw new ReeveError('ASSETS_UNREADABLE', { path: dir, problem: reason(error) }, { cause: error });
    }
  };
  return {
    kind: 'directory',
    address: dir,
    async head({ known, signal }) {
      const { commit } = await look(signal);
      return commit === known ? { outcome: 'unchanged' } : { outcome: 'at', commit };
    },
    async list(commit, signal) {
      const found = last?.commit === commit ? last : await look(signal);
      if (found.commit !== commit) throw moved(dir, commit, found.commit);
      return found;
    },
    // A file that changed since it was listed has another SHA now and is left out by whoever verifies.
    async *read(_commit, wanted, { signal }): AsyncIterable<Blob> {
      for (const { path, sha } of wanted) {
        signal.throwIfAborted();
        const bytes = await readPlainFile(dir, path).catch(() => undefined);
        if (bytes) yield { sha, bytes };
      }
    },
    confirm: async () => ({ descends: undefined }),
    async write(change, signal) {
      const { commit } = await look(signal);
      if (commit !== change.expected) throw moved(dir, change.expected, commit);
      await writeFiles(dir, change);
      return { commit: (await look(signal)).commit } satisfies Written;
    },
  };
}

interface Snapshot {
  readonly commit: string;
  readonly entries: readonly Entry[];
}

/** What a file was when it was last hashed: if it still looks so, its SHA holds. */
interface Seen {
  readonly mark: string;
  readonly sha: string;
}

/** A file written this recently may be written again without looking different: the file system's clock is coarse. */
const SETTLED_MS = 1_000;

interface Memory {
  readonly seen: Map<string, Seen>;
  readonly now: number;
}

async function snapshot(root: string, memory: Memory, signal: AbortSignal): Promise<Snapshot> {
  const entries: Entry[] = [];
  const visit = async (folder: string, trail: string): Promise<TreeItem[]> => {
    const items: TreeItem[] = [];
    const names = await readdir(Buffer.from(folder), { withFileTypes: true, encoding: 'buffer' });
    for (const found of names) {
      signal.throwIfAborted();
      const name = found.name;
      const shown = name.toString();
      if (shown === '.git') continue;
      const path = trail ? `${trail}/${shown}` : shown;
      const full = Buffer.concat([Buffer.from(`${folder}${sep}`), name]);
      if (found.isDirectory()) {
        const inner = await visit(join(folder, shown), path);
        if (inner.length > 0) items.push({ name, mode: '40000', sha: treeSha(inner) });
      } else if (found.isFile() || found.isSymbolicLink()) {
        const item = await hashed(full, path, found.isSymbolicLink(), memory);
        if (entries.push({ path, ...item }) > MOST_ENTRIES) throw new Error(`it has over ${MOST_ENTRIES} files`);
        items.push({ name, mode: item.mode, sha: item.sha });
      }
    }
    return items;
  };
  const commit = treeSha(await visit(root, ''));
  return { commit, entries };
}

async function hashed(full: Buffer, path: string, isLink: boolean, { seen, now }: Memory) {
  const { mode: bits, size, mtimeNs, ctimeNs, ino } = await lstat(full, { bigint: true });
  const mode = isLink ? '120000' : bits & 0o100n ? '100755' : '100644';
  const mark = `${mode} ${size} ${mtimeNs} ${ctimeNs} ${ino}`;
  const known = seen.get(path);
  if (known?.mark === mark) return { mode, sha: known.sha, size: Number(size) } as const;
  const bytes = isLink ? await readlink(full, { encoding: 'buffer' }) : await readFile(full);
  const sha = blobSha(bytes);
  if (now - Number(mtimeNs / 1_000_000n) > SETTLED_MS) seen.set(path, { mark, sha });
  return { mode, sha, size: bytes.byteLength } as const;
}

/** A path that a link would lead out of the folder is not read. */
async function readPlainFile(root: string, path: string): Promise<Buffer | undefined> {
  if (hostility(path)) return undefined;
  const full = join(root, path);
  const base = await realpath(root);
  if ((await realpath(dirname(full))) !== join(base, dirname(path))) return undefined;
  return (await lstat(full)).isFile() ? readFile(full) : undefined;
}

/** Each file by rename, so that a reader sees the old one or the new one. Paths are checked before the first is written. */
async function writeFiles(root: string, { files }: Change): Promise<void> {
  const base = await realpath(root);
  for (const path of files.keys()) {
    const why = hostility(path) ?? (await leavesByLink(base, path));
    if (why) throw new ReeveError('SOURCE_READ_ONLY', { source: `${root}/${path}`, problem: why });
  }
  for (const [path, bytes] of files) {
    const full = join(base, path);
    if (bytes === undefined) {
      await rm(full, { force: true });
      continue;
    }
    await mkdir(dirname(full), { recursive: true });
    const fresh = join(dirname(full), `.reeve-${randomUUID()}`);
    const file = await open(fresh, 'wx', 0o644);
    await file.writeFile(bytes);
    await file.sync();
    await file.close();
    await rename(fresh, full);
  }
}

async function leavesByLink(base: string, path: string): Promise<string | undefined> {
  let folder = base;
  for (const part of dirname(path).split('/')) {
    folder = join(folder, part);
    const found = await lstat(folder).catch(() => undefined);
    if (found?.isSymbolicLink()) return 'a link on the way leads elsewhere';
  }
  return undefined;
}

const moved = (source: string, expected: string, actual: string) =>
  new ReeveError('SOURCE_MOVED', { source, expected, actual });
