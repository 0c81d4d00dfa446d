import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ReeveError, reason } from '../errors.ts';
import { checkFileKey, type FilePart, type FileStore } from './file-store.ts';

export interface FolderFilesOptions {
  readonly dir: string;
  /** Which machine the folder is on. */
  readonly host: string;
}

/** Files in a folder, for their owner's eyes only. */
export function folderFiles({ dir, host }: FolderFilesOptions): FileStore {
  const pathOf = (key: string) => join(dir, checkFileKey(key));
  return {
    place: `file:${host}`,
    put: async (key, bytes) => {
      const path = pathOf(key);
      const draft = `${path}.${randomUUID()}`;
      try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await writeThrough(draft, bytes);
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw failure(dir, error);
      }
    },
    read: async (key, range) => readPart(pathOf(key), range).catch((error: unknown) => ifGone(dir, error)),
    remove: async (key) => {
      const path = pathOf(key);
      await rm(path, { force: true }).catch((error: unknown) => ifGone(dir, error));
      // The folder of its task, if that was its last file.
      await rmdir(dirname(path)).catch(() => {});
    },
  };
}

/** On the disk before it has its name: a machine that loses power must not be left with an empty one. */
async function writeThrough(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function readPart(path: string, { offset, length }: { offset: number; length: number }): Promise<FilePart> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - offset)));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, offset);
    return { bytes: bytes.subarray(0, bytesRead), size };
  } finally {
    await file.close();
  }
}

function ifGone(dir: string, error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw failure(dir, error);
}

const failure = (dir: string, error: unknown) =>
  new ReeveError('FILES_UNAVAILABLE', { place: dir, problem: reason(error) }, { cause: error });
