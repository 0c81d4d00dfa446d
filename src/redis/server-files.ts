import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { RedisAddress } from './address.ts';

/** The files of an embedded Redis. All lie in one directory that only its user may enter. */
export interface ServerFiles {
  readonly dir: string;
  readonly config: string;
  readonly password: string;
  readonly log: string;
  readonly pid: string;
  readonly socket: string;
}

export function serverFiles(directory: string): ServerFiles {
  const dir = resolve(directory);
  return {
    dir,
    config: join(dir, 'redis.conf'),
    password: join(dir, 'password'),
    log: join(dir, 'redis.log'),
    pid: join(dir, 'redis.pid'),
    socket: join(dir, 'redis.sock'),
  };
}

export async function prepareDir({ dir }: ServerFiles): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await chmod(dir, 0o700);
}

/** Made once and kept, so that clients outlive a restart of the server, and the server one of the daemon. */
export async function keptPassword({ password }: ServerFiles): Promise<string> {
  const kept = await readFile(password, 'utf8').catch(() => '');
  if (kept.trim()) return kept.trim();
  const made = randomBytes(32).toString('base64url');
  await writeFile(password, `${made}\n`, { mode: 0o600 });
  return made;
}

/** The password stands in this file, not on the command line, where every user of the machine could read it. */
export async function writeConfig(files: ServerFiles, address: RedisAddress): Promise<void> {
  await writeFile(files.config, configText(files, address), { mode: 0o600 });
  // The mode above counts only for a new file.
  await chmod(files.config, 0o600);
}

function configText(files: ServerFiles, address: RedisAddress): string {
  const listen =
    address.kind === 'socket'
      ? [
          ['port', '0'],
          ['unixsocket', address.path],
          ['unixsocketperm', '700'],
        ]
      : [
          ['bind', address.host],
          ['port', String(address.port)],
        ];
  const settings = [
    ...listen,
    ['requirepass', address.password],
    ['protected-mode', 'yes'],
    ['daemonize', 'no'],
    ['supervised', 'no'],
    ['pidfile', files.pid],
    ['dir', files.dir],
    ['logfile', files.log],
    ['loglevel', 'notice'],
    ['appendonly', 'yes'],
    ['appendfsync', 'everysec'],
    // A crash in the middle of a write loses that write only, not the start.
    ['aof-load-truncated', 'yes'],
    // The append-only file holds everything; snapshots beside it would only cost.
    ['save', ''],
    // Tasks and locks must never be dropped to make room.
    ['maxmemory-policy', 'noeviction'],
    // A small sorted set is one piece of memory that is read from its start; what runs is sought in it with every claim.
    ['zset-max-ziplist-entries', '32'],
    // Keeps this file's name on the command line, by which a later daemon knows a leftover server as its own.
    ['set-proc-title', 'no'],
  ];
  return settings.map(([name, value]) => `${name} ${JSON.stringify(value)}\n`).join('');
}

const LOG_LIMIT_BYTES = 5 * 1024 * 1024;

/** Redis never shortens its log, so each start of it does: at most one old part is kept. */
export async function boundLog({ log }: ServerFiles): Promise<void> {
  const size = await stat(log).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LOG_LIMIT_BYTES) await rename(log, `${log}.1`);
}

export async function lastLines({ log }: ServerFiles, count: number): Promise<string[]> {
  const file = await open(log).catch(() => undefined);
  if (!file) return [];
  try {
    const { size } = await file.stat();
    const length = Math.min(size, 8192);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer
      .toString('utf8')
      .split('\n')
      .filter((line) => line.trim())
      .slice(-count);
  } finally {
    await file.close();
  }
}
