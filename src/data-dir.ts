import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { type Clock, isoTime } from './clock.ts';
import { birthOf, readDaemonFile, removeDaemonFile, writeDaemonFile } from './daemon-file.ts';
import { ReeveError, reason } from './errors.ts';
import type { Logger } from './log.ts';

export interface HoldOptions {
  readonly dir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly describe: { readonly version: string; readonly address?: string };
}

/** The exclusive right to a data directory, until released or until this process ends in whatever way. */
export interface DataDirHold extends AsyncDisposable {
  readonly dir: string;
  /** Says where the daemon can be reached, once that is known. */
  publish(address: string): Promise<void>;
  release(): Promise<void>;
}

/**
 * Creates the data directory where needed and takes the exclusive hold of it.
 *
 * The hold is an open write transaction on an empty SQLite file, which is a lock of the kernel on that file (Node
 * itself offers none). The kernel drops it with the process, so kill -9 leaves nothing stale; it is taken in one step,
 * so of many starters exactly one wins. A pid file or a socket must be removed when stale, and between looking and
 * removing another starter can have come. For the same reason the lock file is never deleted.
 * IMMEDIATE, not EXCLUSIVE: the latter also waits for readers, and two starters reading at once would both fail.
 */
export async function holdDataDir({ dir: given, clock, log, describe }: HoldOptions): Promise<DataDirHold> {
  const dir = resolve(given);
  await prepare(dir);
  const lock = takeLock(dir);
  if (!lock) throw await heldBy(dir, clock);

  const since = isoTime(clock);
  const born = await birthOf(process.pid);
  const publish = (address: string) =>
    writeDaemonFile(dir, { pid: process.pid, since, address, version: describe.version, ...(born && { born }) });
  const release = async () => {
    if (!lock.open) return;
    // The file goes first: once the lock is free it may be another daemon's.
    await removeDaemonFile(dir);
    lock.close();
    log.debug('data directory released', { dir });
  };
  try {
    await publish(describe.address ?? 'starting');
  } catch (failure) {
    lock.close();
    throw unwritable(dir, failure);
  }
  log.debug('data directory held', { dir });
  return { dir, publish, release, [Symbol.asyncDispose]: release };
}

const HOLDER_KNOWN_WITHIN_MS = 1_000;

async function prepare(dir: string): Promise<void> {
  const probe = join(dir, `.probe-${randomUUID()}`);
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(probe, '');
    await rm(probe);
  } catch (failure) {
    throw unwritable(dir, failure);
  }
}

const unwritable = (dataDir: string, failure: unknown) =>
  new ReeveError('DATA_DIR_UNWRITABLE', { dataDir, problem: reason(failure) }, { cause: failure });

function takeLock(dir: string): Database.Database | undefined {
  let lock: Database.Database | undefined;
  try {
    lock = new Database(join(dir, 'daemon.lock'), { timeout: 0 });
    lock.exec('BEGIN IMMEDIATE');
    return lock;
  } catch (failure) {
    lock?.close();
    if (failure instanceof Database.SqliteError && failure.code.startsWith('SQLITE_BUSY')) return undefined;
    throw unwritable(dir, failure);
  }
}

/** The holder may have won a moment ago and not have told yet. */
async function heldBy(dataDir: string, clock: Clock): Promise<ReeveError> {
  const deadline = clock.now() + HOLDER_KNOWN_WITHIN_MS;
  let holder = await readDaemonFile(dataDir);
  while (!holder && clock.now() < deadline) {
    await clock.sleep(20);
    holder = await readDaemonFile(dataDir);
  }
  const { pid = 'unknown', since = 'just now', address = 'an unknown address' } = holder ?? {};
  return new ReeveError('DATA_DIR_HELD', { dataDir, pid, since, address });
}
