import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../../src/clock.ts';
import { LockChannels } from '../../../src/coordinator/locks/channels.ts';
import { keepAlive } from '../../../src/coordinator/locks/heartbeat.ts';
import type { AcquireOutcome, Grant } from '../../../src/coordinator/locks/lock.ts';
import { Waiter } from '../../../src/coordinator/locks/waiter.ts';
import { runChild, type TestChild } from '../../support/child.ts';
import { held, lockRoomOn, type OpenRoom, wanted } from './room.ts';

/** An agent in a process of its own, which can be killed, and stopped while its leases run on. */
export interface Order {
  readonly options: RedisOptions;
  readonly agent: string;
  readonly lock: string;
  readonly leaseMs: number;
  readonly waitMs?: number;
  /** For `writes`: in which rounds it is stopped between its reading and its writing; and whether the token is checked. */
  readonly rounds?: readonly ('goes on' | 'is stopped')[];
  readonly checks?: boolean;
}

export const startAgent = (what: keyof typeof LIVES, order: Order): TestChild =>
  runChild(
    `const { live } = await import(${JSON.stringify(import.meta.url)}); await live(${JSON.stringify(what)}, ${JSON.stringify(order)});`,
  );

export const goOn = (child: TestChild): void => void process.kill(child.pid, 'SIGCONT');

/** Runs in the child. */
export async function live(what: keyof typeof LIVES, order: Order): Promise<void> {
  const target = { kind: 'standalone', address: 'test', options: order.options } as const;
  const room = await lockRoomOn(target, { mode: 'standalone' });
  await LIVES[what](room, order);
  await room.connection.stop();
}

const LIVES = { holds, writes, waits } as const;

/** Holds a lock, renewing it, until that is lost; then tries what a holder may do. */
async function holds(room: OpenRoom, order: Order): Promise<void> {
  const { agent, lock, leaseMs } = order;
  const grant = granted(await ask(room, order, `${agent}-1`));
  const kept = keepAlive({
    beat: async () => {
      const { outcome } = await room.locks.heartbeat(held(agent, lock), leaseMs);
      return outcome === 'extended' ? { outcome, leaseMs } : { outcome };
    },
    lock,
    lockId: grant.lockId,
    agent,
    leaseMs,
    intervalMs: leaseMs / 3,
    clock: systemClock,
  });
  say({ token: grant.token });
  await new Promise<void>((resolve) => kept.signal.addEventListener('abort', () => resolve(), { once: true }));
  const beat = await room.locks.heartbeat(held(agent, lock), leaseMs);
  const [release] = await room.locks.release(held(agent, lock));
  const isWritten = await ledger(order).write(agent, [], grant.token, true);
  say({ why: String(kept.signal.reason.code), beat: beat.outcome, release: release?.outcome, isWritten });
}

/** Waits in line until it is killed. */
async function waits(room: OpenRoom, order: Order): Promise<void> {
  say({ outcome: (await room.locks.acquire(requestOf(order, `${order.agent}-1`))).outcome });
  await ask(room, order, `${order.agent}-1`);
}

/** Reads, thinks and writes back under the lock. Stopped, it does not know how long it thought. */
async function writes(room: OpenRoom, order: Order): Promise<void> {
  const { agent, lock, rounds = [], checks = true } = order;
  const book = ledger(order);
  for (const [round, pause] of rounds.entries()) {
    const lockId = `${agent}-${round}`;
    const { token } = granted(await ask(room, order, lockId));
    const entries = await book.read(token);
    say({ saw: token, isStopped: pause === 'is stopped' });
    if (pause === 'is stopped') process.kill(process.pid, 'SIGSTOP');
    const isAccepted = await book.write(lockId, entries, token, checks);
    say({ wrote: lockId, isAccepted });
    await room.locks.release(held(agent, lock, lockId));
  }
  say({ ended: true });
  book.close();
}

const ask = (room: OpenRoom, order: Order, lockId: string): Promise<AcquireOutcome> =>
  new Waiter({ locks: room.locks, channels: new LockChannels(room.connection), clock: systemClock }).acquire(
    requestOf(order, lockId),
  );

const requestOf = ({ agent, lock, leaseMs, waitMs = 0 }: Order, lockId: string) => ({
  agent,
  lockId,
  locks: wanted(lock),
  leaseMs,
  waitMs,
});

function granted(outcome: AcquireOutcome): Grant {
  if (outcome.outcome !== 'granted') throw new Error(JSON.stringify(outcome));
  return outcome.grants[0] as Grant;
}

const say = (word: object): void => void process.stdout.write(`${JSON.stringify(word)}\n`);

/**
 * What the lock protects, in another database than the locks: a list that is read, changed and written back. Checking, it
 * serves no token older than one it has seen.
 */
export function ledger({ options }: Pick<Order, 'options'>) {
  const redis = new Redis({ ...options, db: 1 });
  const CHECKED = `
    local newest = tonumber(redis.call('GET', 'newest')) or 0
    if ARGV[3] == '1' and tonumber(ARGV[2]) < newest then return 0 end
    redis.call('SET', 'entries', ARGV[1])
    return 1`;
  return {
    entries: async () => JSON.parse((await redis.get('entries')) ?? '[]') as string[],
    read: async (token: number) => {
      await redis.set('newest', Math.max(token, Number((await redis.get('newest')) ?? 0)));
      return JSON.parse((await redis.get('entries')) ?? '[]') as string[];
    },
    write: async (entry: string, before: readonly string[], token: number, checks: boolean) =>
      (await redis.eval(CHECKED, 0, JSON.stringify([...before, entry]), token, checks ? '1' : '0')) === 1,
    close: () => redis.disconnect(),
  };
}
