import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../src/clock.ts';
import { EventLog } from '../src/events/event-log.ts';
import { silentLog } from '../src/log.ts';
import { connectionOptions } from '../src/redis/address.ts';
import { type Connection, connectRedis } from '../src/redis/connection.ts';
import { findRedisServer } from '../src/redis/find-server.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../src/redis/keys.ts';
import { createScripts, type Scripts } from '../src/redis/script.ts';
import { redisServer } from '../src/redis/server.ts';

/** What the rooms under test stand on. */
export interface BenchRedis extends AsyncDisposable {
  readonly connection: Connection;
  readonly spelling: KeyspaceOptions;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly events: EventLog;
  /** One connection for the peers and the floor, of the kind that the rooms have. */
  readonly redis: Redis;
  /** For a peer that makes its connections itself. */
  readonly options: RedisOptions;
}

/**
 * A Redis of its own on a loopback port, as over a network, and without its append-only file: what a disk costs is the
 * server's affair, and the same for everyone who writes as much.
 */
export async function openBenchRedis(): Promise<BenchRedis> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-bench-'));
  const path = process.env.PATH ?? '';
  const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'reeve');
  const server = redisServer({
    find: () => findRedisServer({ dataDir: dir, cacheDir, path, env: process.env, clock: systemClock, log: silentLog }),
    dir,
    listen: { port: await freePort() },
    path,
    clock: systemClock,
    log: silentLog,
  });
  await server.start();
  const options = connectionOptions(server.address());
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'bench', options }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 30_000,
    connectTimeoutMs: 10_000,
    name: 'bench',
  });
  await connection.start();
  const redis = new Redis(options);
  await redis.config('SET', 'appendonly', 'no');
  const spelling = { mode: 'standalone' } as const;
  const keys = keyspace(spelling);
  const context = () => ({ shift_us: 0, keep: 10_000, source: 'bench' });
  const scripts = createScripts({ connection, keyspace: spelling, context });
  const events = new EventLog({ connection, keys, scripts });
  const close = async () => {
    redis.disconnect();
    await connection.stop();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  };
  return { connection, spelling, keys, scripts, events, redis, options, [Symbol.asyncDispose]: close };
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
