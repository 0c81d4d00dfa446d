import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createLog, type Logger } from '../../src/log.ts';
import { openStore, type Store, type StoreOptions } from '../../src/store/database.ts';

/** A directory that goes when the test ends. */
export async function aDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-store-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A log that keeps its lines: `lines()` are the sentences and fields so far. */
export async function aLog(): Promise<{ log: Logger; lines: () => Record<string, unknown>[] }> {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  return { log: await createLog({ level: 'debug', format: 'json', destination }), lines: () => lines };
}

/** An open store that is closed when the test ends. */
export async function aStore(options: Partial<StoreOptions>): Promise<Store> {
  const { log } = await aLog();
  const store = await openStore({ dataDir: '/nonexistent', clock: systemClock, log, ...options });
  onTestFinished(() => store.stop());
  return store;
}

/** The real migrations and some more, by file name; a text under a real name takes its place. */
export async function withMigrations(more: Record<string, string>): Promise<URL> {
  const dir = await aDirectory();
  await cp(new URL('../../src/store/migrations/', import.meta.url), dir, { recursive: true });
  for (const [name, text] of Object.entries(more)) await writeFile(join(dir, name), text);
  return pathToFileURL(`${dir}/`);
}
