import { join } from 'node:path';
import type { Clock } from './clock.ts';
import { holdDataDir } from './data-dir.ts';
import type { Logger } from './log.ts';
import { addressText, connectionOptions } from './redis/address.ts';
import { type Connection, connectRedis } from './redis/connection.ts';
import { findRedisServer } from './redis/find-server.ts';
import { redisServer } from './redis/server.ts';
import { type RedisTarget, redisTarget } from './redis/target.ts';
import { group, service } from './service.ts';
import type { Config } from './settings.ts';

export interface StandaloneOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly version: string;
}

const CONNECT_MS = 30_000;

/**
 * Does a piece of work on the Redis of the settings without a daemon: the one that is named, or else the private one of
 * the data directory, which is started for as long as the work takes.
 */
export async function withRedis<T>(
  options: StandaloneOptions,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const { config, env, clock, log, version } = options;
  const { dataDir, redis } = config;
  const path = env.PATH ?? '';
  const server = redisServer({
    find: (signal) =>
      findRedisServer({
        setting: redis.server,
        dataDir,
        cacheDir: config.cacheDir,
        path,
        env,
        clock,
        log,
        signal,
      }),
    dir: join(dataDir, 'redis'),
    path,
    clock,
    log,
  });
  const target = (): RedisTarget =>
    redis.url
      ? redisTarget({ ...redis, url: redis.url })
      : { kind: 'standalone', address: addressText(server.address()), options: connectionOptions(server.address()) };
  const { commandTimeoutMs } = redis;
  const connection = connectRedis({
    target,
    clock,
    log,
    commandTimeoutMs,
    connectTimeoutMs: CONNECT_MS,
    name: 'reeve',
  });
  const hold = service('data directory', async () => {
    const taken = await holdDataDir({ dir: dataDir, clock, log, describe: { version } });
    return () => taken.release();
  });
  const life = group('reeve', redis.url ? [connection] : [hold, server, connection]);
  await life.start();
  try {
    return await work(connection);
  } finally {
    await life.stop();
  }
}
