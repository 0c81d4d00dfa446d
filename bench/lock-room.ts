import type { Redis } from 'ioredis';
import { systemClock } from '../src/clock.ts';
import { LockChannels } from '../src/coordinator/locks/channels.ts';
import { Locks } from '../src/coordinator/locks/locks.ts';
import { Waiter } from '../src/coordinator/locks/waiter.ts';
import { openBenchRedis } from './bench-redis.ts';

export interface LockRoom extends AsyncDisposable {
  readonly locks: Locks;
  readonly waiter: Waiter;
  /** One connection for the peers and the floor: plain ioredis, as their users have it. The locks' own sends what one turn asks for together. */
  readonly redis: Redis;
}

/** The locks as the daemon has them, on a Redis of their own. */
export async function openLockRoom(): Promise<LockRoom> {
  const base = await openBenchRedis();
  const { connection, spelling, scripts, events, redis } = base;
  const limits = () => ({ leaseMs: 30_000, maxLeaseMs: 900_000, depth: 1000 });
  const locks = new Locks({ connection, keyspace: spelling, scripts, events, limits });
  const waiter = new Waiter({ locks, channels: new LockChannels(connection), clock: systemClock });
  return { locks, waiter, redis, [Symbol.asyncDispose]: () => base[Symbol.asyncDispose]() };
}
