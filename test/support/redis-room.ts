import { systemClock } from '../../src/clock.ts';
import { EventLog } from '../../src/events/event-log.ts';
import { silentLog } from '../../src/log.ts';
import { type Connection, connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../../src/redis/keys.ts';
import { createScripts, type Scripts } from '../../src/redis/script.ts';
import type { RedisTarget } from '../../src/redis/target.ts';
import { startTestRedis, type TestRedis } from './redis.ts';
import { undeclaredKeys } from './undeclared-keys.ts';

/** What a room of the daemon stands on, over a real Redis, with time that a test moves. */
export interface RoomOn extends AsyncDisposable {
  readonly connection: Connection;
  readonly client: RedisClient;
  readonly keyspace: KeyspaceOptions;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly events: EventLog;
  /** The Redis server's time goes on by so much, as scripts see it. */
  shift(ms: number): void;
  shifted(): number;
}

export interface RedisRoom extends RoomOn {
  /** The server, its own. */
  readonly redis: TestRedis;
  /** Empties it and takes the shift back. Fails if there is a key that no row of the key table explains. */
  reset(): Promise<void>;
}

export async function aRedisRoom(): Promise<RedisRoom> {
  const redis = await startTestRedis();
  const client = redis.client();
  const room = await aRoomOn({ kind: 'standalone', address: 'test', options: redis.options }, { mode: 'standalone' });
  return {
    ...room,
    redis,
    reset: async () => {
      room.shift(-room.shifted());
      const strays = await undeclaredKeys(client);
      await redis.flush();
      if (strays.length > 0) throw new Error(strays.join('\n'));
    },
    [Symbol.asyncDispose]: async () => {
      await room[Symbol.asyncDispose]();
      await redis.stop();
    },
  };
}

/** The same over a server or cluster that a test runs itself. */
export async function aRoomOn(target: RedisTarget, spelling: KeyspaceOptions): Promise<RoomOn> {
  const connection = connectRedis({
    target: () => target,
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 5_000,
    connectTimeoutMs: 10_000,
    name: 'test',
  });
  await connection.start();
  let shift_us = 0;
  const keys = keyspace(spelling);
  const context = () => ({ shift_us, keep: 1_000, source: 'test' });
  const scripts = createScripts({ connection, keyspace: spelling, context });
  return {
    connection,
    client: connection.commands,
    keyspace: spelling,
    keys,
    scripts,
    events: new EventLog({ connection, keys, scripts }),
    shift: (ms) => {
      shift_us += ms * 1000;
    },
    shifted: () => shift_us / 1000,
    [Symbol.asyncDispose]: () => connection.stop(),
  };
}
