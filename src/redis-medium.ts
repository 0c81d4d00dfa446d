import { join } from 'node:path';
import type { Clock } from './clock.ts';
import type { ReeveError } from './errors.ts';
import type { Logger } from './log.ts';
import { addressText, connectionOptions } from './redis/address.ts';
import { type Connection, connectRedis } from './redis/connection.ts';
import { refuseEviction } from './redis/eviction.ts';
import { findRedisServer } from './redis/find-server.ts';
import { type RedisServer, type RestartFacts, redisServer } from './redis/server.ts';
import { type RedisTarget, redisTarget } from './redis/target.ts';
import type { Service } from './service.ts';
import type { Config } from './settings.ts';

export interface RedisMediumOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onRestart?: (facts: RestartFacts) => void;
  readonly onFatal?: (error: ReeveError) => void;
}

export interface RedisMedium {
  readonly connection: Connection;
  readonly isEmbedded: boolean;
  readonly server: RedisServer;
  /** What has to run, in order: the private server where there is one, and the connection. */
  readonly members: readonly Service[];
}

/** A private server may first have to be fetched, and read back what it kept. */
export const EMBEDDED_CONNECT_MS = 30_000;
const EXTERNAL_CONNECT_MS = 5_000;

/** The Redis of the settings: the one that is named, or else a private one in the data directory. */
export function createRedisMedium({ config, env, clock, log, onRestart, onFatal }: RedisMediumOptions): RedisMedium {
  const { dataDir, cacheDir, redis } = config;
  const isEmbedded = redis.url === undefined;
  const path = env.PATH ?? '';
  const server = redisServer({
    find: (signal) => findRedisServer({ setting: redis.server, dataDir, cacheDir, path, env, clock, log, signal }),
    dir: join(dataDir, 'redis'),
    path,
    clock,
    log,
    ...(onRestart && { onRestart }),
    ...(onFatal && { onFatal }),
  });
  const target = (): RedisTarget =>
    redis.url
      ? redisTarget({ ...redis, url: redis.url })
      : { kind: 'standalone', address: addressText(server.address()), options: connectionOptions(server.address()) };
  const connection = connectRedis({
    target,
    clock,
    log,
    commandTimeoutMs: redis.commandTimeoutMs,
    connectTimeoutMs: isEmbedded ? EMBEDDED_CONNECT_MS : EXTERNAL_CONNECT_MS,
    name: 'reeve',
  });
  const careful = redis.allowEviction ? [connection] : [connection, refuseEviction(connection)];
  return { connection, isEmbedded, server, members: isEmbedded ? [server, connection] : careful };
}
