import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import { type Logger, silentLog } from '../../src/log.ts';
import { connectionOptions, type RedisAddress } from '../../src/redis/address.ts';
import { findRedisServer, type RedisProgram } from '../../src/redis/find-server.ts';
import { redisServer } from '../../src/redis/server.ts';

export const systemPath = process.env.PATH ?? '';

/** The program that every test runs: the system's, or a private copy in the user's cache. */
export function findTestRedis(log: Logger = silentLog): Promise<RedisProgram> {
  const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'reeve');
  const dataDir = join(tmpdir(), 'reeve-test-redis');
  return findRedisServer({ dataDir, cacheDir, path: systemPath, env: process.env, clock: systemClock, log });
}

export interface TestRedis extends AsyncDisposable {
  readonly address: RedisAddress;
  /** For ioredis: where it is and how to log in. */
  readonly options: RedisOptions;
  readonly password: string;
  /** A connected client; stop() closes it. */
  client(more?: RedisOptions): Redis;
  flush(): Promise<void>;
  stop(): Promise<void>;
}

/** A real server for one test file, run by the daemon's own launcher in a directory that stop() removes. */
export async function startTestRedis(): Promise<TestRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-redis-'));
  const server = redisServer({
    find: () => findTestRedis(),
    dir,
    path: systemPath,
    clock: systemClock,
    log: silentLog,
  });
  await server.start();
  const address = server.address();
  const options = connectionOptions(address);
  const clients = new Set<Redis>();
  const client = (more: RedisOptions = {}) => {
    const made = new Redis({ ...options, ...more });
    clients.add(made);
    return made;
  };
  const flush = async () => {
    const flusher = new Redis(options);
    await flusher.flushall();
    flusher.disconnect();
  };
  const stop = async () => {
    for (const each of clients) each.disconnect();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  };
  return { address, options, password: address.password, client, flush, stop, [Symbol.asyncDispose]: stop };
}
