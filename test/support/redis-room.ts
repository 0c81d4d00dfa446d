import { systemClock } from '../../src/clock.ts';
import { EventLog } from '../../src/events/event-log.ts';
import { silentLog } from '../../src/log.ts';
import type { Connection } from '../../src/redis/connection.ts';
import { connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../../src/redis/keys.ts';
import { createScripts, type Scripts } from '../../src/redis/script.ts';
import { startTestRedis, type TestRedis } from './redis.ts';

/** What a room of the daemon stands on, over a real Redis of its own, with time that a test moves. */
export interface RedisRoom extends AsyncDisposable {
  readonly redis: TestRedis;
  readonly connection: Connection;
  readonly client: RedisClient;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly events: EventLog;
  /** The Redis server's time goes on by so much, as scripts see it. */
  shift(ms: number): void;
  /** Empties it and takes the shift back. */
  reset(): Promise<void>;
}

export async function aRedisRoom(spelling: KeyspaceOptions = { mode: 'standalone' }): Promise<RedisRoom> {
  const redis = await startTestRedis();
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'test', options: redis.options }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 5_000,
    connectTimeoutMs: 5_000,
    name: 'test',
  });
  await connection.start();
  let shift_us = 0;
  const keys = keyspace(spelling);
  const scripts = createScripts({
    connection,
    keyspace: spelling,
    context: () => ({ shift_us, keep: 1_000, source: 'test' }),
  });
  return {
    redis,
    connection,
    client: connection.commands,
    keys,
    scripts,
    events: new EventLog({ connection, keys, scripts }),
    shift: (ms) => {
      shift_us += ms * 1000;
    },
    reset: async () => {
      shift_us = 0;
      await redis.flush();
    },
    [Symbol.asyncDispose]: async () => {
      await connection.stop();
      await redis.stop();
    },
  };
}
