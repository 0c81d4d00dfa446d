import type { RedisClient } from '../../src/redis/connection.ts';
import { createScripts, type Scripts } from '../../src/redis/script.ts';
import type { RoomOn } from './redis-room.ts';

/** The same scripts on the same Redis, at one moment to the microsecond: a clock that runs cannot be asked for it. */
export function frozenScripts(
  { connection, keyspace }: Pick<RoomOn, 'connection' | 'keyspace'>,
  nowUs: number,
): Scripts {
  const moment = `{ ${Math.floor(nowUs / 1_000_000)}, ${nowUs % 1_000_000} }`;
  const redis = connection.commands;
  const stopped = {
    evalsha: () => Promise.reject(new Error('NOSCRIPT')),
    eval: (lua: string, ...rest: [number, ...(string | number)[]]) =>
      redis.eval(lua.replaceAll("redis.call('TIME')", moment), ...rest),
  } as unknown as RedisClient;
  const scripts = createScripts({
    connection,
    keyspace,
    context: () => ({ shift_us: 0, keep: 1_000, source: 'test' }),
  });
  return { run: (script, keys, args) => scripts.run(script, keys, args, stopped) };
}
