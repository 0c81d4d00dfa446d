import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { ProgramEnv } from './run-program.ts';
import { findTools, unpackServer } from './unpack-server.ts';

export interface FetchOptions {
  /** Holds private copies, each in a directory of its own. */
  readonly into: string;
  /** Where apt-get, dpkg-deb, dpkg-query and ldd are looked for, in the form of PATH. */
  readonly path: string;
  /** Passed on to apt, which takes its proxies from it. */
  readonly env: ProgramEnv;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/**
 * Unpacks the distribution's own redis-server below `into`, touching nothing else: no root, no system service, and
 * apt still checks every signature. The copy appears by one rename, so that a crash, or another daemon doing the same,
 * never leaves half of one. Resolves to the directory of the copy.
 */
export async function fetchServer(options: FetchOptions): Promise<string> {
  const { into, clock, log } = options;
  const tools = await findTools(options.path);
  await mkdir(into, { recursive: true, mode: 0o755 });
  await removeAbandoned(into, clock.now());
  const startedAt = clock.now();
  log.info('fetching a private redis-server', { into });
  const work = await mkdtemp(join(into, WORK_PREFIX));
  try {
    const { root, bytes } = await unpackServer({ ...options, tools, work });
    const copy = await settle(root, into);
    log.info('private redis-server fetched', { copy, seconds: (clock.now() - startedAt) / 1000, bytes });
    return copy;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const WORK_PREFIX = '.fetch-';
const ABANDONED_AFTER_MS = 3_600_000;

/** A daemon killed while it fetched leaves its workshop; an hour later nobody can still be in it. */
async function removeAbandoned(into: string, now: number): Promise<void> {
  for (const name of await readdir(into)) {
    if (!name.startsWith(WORK_PREFIX)) continue;
    const old = await stat(join(into, name)).then(
      ({ mtimeMs }) => now - mtimeMs > ABANDONED_AFTER_MS,
      () => false,
    );
    if (old) await rm(join(into, name), { recursive: true, force: true });
  }
}

/** Takes the next free number: a copy that no longer runs, or that another daemon made just now, is left alone. */
async function settle(root: string, into: string): Promise<string> {
  for (let number = 1; ; number++) {
    const copy = join(into, `copy-${number}`);
    try {
      await rename(root, copy);
      return copy;
    } catch (failure) {
      const code = (failure as NodeJS.ErrnoException).code;
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw failure;
    }
  }
}
