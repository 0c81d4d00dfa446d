import { existsSync } from 'node:fs';
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ReeveError, reason } from '../../errors.ts';
import { formatOf } from './open-prd-db.ts';
import type { PrdFormat } from './prd-db.ts';
import { Tables } from './tables.ts';

export interface PrdFile {
  readonly path: string;
  /** Made by the daemon from the sample, because no file was named and none was there. */
  readonly sample: boolean;
}

const SAMPLE = new URL('../../../examples/prd.sql', import.meta.url);

/** Which file holds the tasks: the one named, else prd.db where the daemon was started, else a sample of our own. */
export function choosePrdFile(named: string | undefined, cwd: string, dataDir: string): PrdFile {
  if (named) return { path: named, sample: false };
  const here = join(cwd, 'prd.db');
  if (existsSync(here)) return { path: here, sample: false };
  return { path: join(dataDir, 'prd.db'), sample: true };
}

/** Makes the sample if it is not there yet. A file that is there is never touched. */
export async function makeSample({ path, sample }: PrdFile): Promise<boolean> {
  if (!sample || existsSync(path)) return false;
  const half = `${path}.new`;
  await rm(half, { force: true });
  const database = await open(half, { readonly: false });
  try {
    database.exec(await readFile(SAMPLE, 'utf8'));
  } finally {
    database.close();
  }
  await rename(half, path);
  return true;
}

/** What a task file holds, as far as anyone needs to know to trust it. */
export async function inspectPrdFile(path: string): Promise<{ format: PrdFormat; tasks: number }> {
  if (!existsSync(path)) throw new ReeveError('PRD_UNREADABLE', { path, problem: 'there is no such file' });
  try {
    const database = await open(path, { readonly: true });
    try {
      const format = formatOf(new Tables(database));
      if (!format) throw new Error('its tasks table is missing, or is of neither known form');
      const { tasks } = database.prepare('select count(*) as tasks from tasks').get() as { tasks: number };
      return { format, tasks };
    } finally {
      database.close();
    }
  } catch (error) {
    throw new ReeveError('PRD_UNREADABLE', { path, problem: reason(error) }, { cause: error });
  }
}

/** The driver is loaded when a file is first opened. Others may hold the file for a moment: wait for them. */
async function open(path: string, { readonly }: { readonly readonly: boolean }) {
  const { default: Sqlite } = await import('better-sqlite3');
  return new Sqlite(path, { readonly, timeout: 1_000 });
}
