import { systemClock } from '../../../src/clock.ts';
import type { CopiesWanted } from '../../../src/coordinator/locks/copies.ts';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { type AcquireRequest, type LockLimits, Locks } from '../../../src/coordinator/locks/locks.ts';
import { EventLog } from '../../../src/events/event-log.ts';
import { silentLog } from '../../../src/log.ts';
import { type Connection, connectRedis } from '../../../src/redis/connection.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../../../src/redis/keys.ts';
import { createScripts, type Scripts } from '../../../src/redis/script.ts';
import type { RedisTarget } from '../../../src/redis/target.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';

/** Locks over a real Redis, with a hand on the clock. */
export interface LockRoom {
  readonly redis: TestRedis;
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly events: EventLog;
  readonly locks: Locks;
  limits: LockLimits;
  /** Moves the scripts' time; what Redis itself expires stays. */
  pass(ms: number): void;
  /** Kinds of the events of the lock stream so far, oldest first. */
  told(): Promise<string[]>;
  reset(): Promise<void>;
  stop(): Promise<void>;
}

export const USUAL: LockLimits = { leaseMs: 30_000, maxLeaseMs: 900_000, depth: 1000 };

export async function aLockRoom(): Promise<LockRoom> {
  const redis = await startTestRedis();
  const target: RedisTarget = { kind: 'standalone', address: 'test', options: redis.options };
  const room = await lockRoomOn(target, { mode: 'standalone' });
  // The very same object: its limits are read anew on each call.
  return Object.assign(room, { redis, reset: () => reset(room, redis), stop: () => stop(room, redis) });
}

export type OpenRoom = Omit<LockRoom, 'redis' | 'reset' | 'stop'> & { time: { shiftMs: number } };

export async function lockRoomOn(
  target: RedisTarget,
  spelling: KeyspaceOptions = { mode: 'standalone' },
  copies?: CopiesWanted,
): Promise<OpenRoom> {
  const connection = connectRedis({
    target: () => target,
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 5_000,
    connectTimeoutMs: 10_000,
    name: 'locks-test',
  });
  await connection.start();
  const time = { shiftMs: 0 };
  const keys = keyspace(spelling);
  const context = () => ({ shift_us: time.shiftMs * 1000, keep: 10_000, source: 'test' });
  const scripts = createScripts({ connection, keyspace: spelling, context });
  const events = new EventLog({ connection, keys, scripts });
  const room = { limits: USUAL };
  const limits = () => room.limits;
  const locks = new Locks({ connection, keyspace: spelling, scripts, events, limits, ...(copies && { copies }) });
  return Object.assign(room, {
    connection,
    keys,
    scripts,
    events,
    locks,
    time,
    pass: (ms: number) => {
      time.shiftMs += ms;
    },
    told: async () => {
      const { events: seen } = await events.latest({ streams: ['lock'], limit: 10_000 });
      return seen.map(({ event, payload }) => `${event.slice(5)} ${String(payload.lock)} ${String(payload.agent_id)}`);
    },
  });
}

async function reset(room: OpenRoom, redis: TestRedis): Promise<void> {
  room.time.shiftMs = 0;
  room.limits = USUAL;
  await redis.flush();
}

async function stop(room: OpenRoom, redis: TestRedis): Promise<void> {
  await room.connection.stop();
  await redis.stop();
}

/** `ask('ann', 'task:1', { waitMs: 1000 })`: the lock_id is the agent's name unless given. */
export function asks(locks: Locks) {
  return (agent: string, lock: string | readonly string[], more: Partial<AcquireRequest> = {}) =>
    locks.acquire({ agent, lockId: `${agent}-1`, locks: wanted(lock), ...more });
}

/** `resource:db:main+shared` asks for it shared. */
export const wanted = (locks: string | readonly string[]): AcquireRequest['locks'] =>
  [locks].flat().map((text) => {
    const [lock, mode] = text.split('+') as [string, 'shared' | undefined];
    return { lock: parseLock(lock), mode: mode ?? 'exclusive' };
  });

export const held = (agent: string, lock: string | readonly string[], lockId = `${agent}-1`) => ({
  agent,
  lockId,
  locks: wanted(lock).map((each) => each.lock),
});
