import { setTimeout as pause } from 'node:timers/promises';
import { Redlock } from '@sesamecare-oss/redlock';
import { Mutex } from 'redis-semaphore';
import { parseLock } from '../src/coordinator/locks/lock.ts';
import { type Metric, median, metric, type Surroundings } from './harness.ts';
import type { LockRoom } from './lock-room.ts';

const CLIENTS = 50;
const HOLD_MS = 2;
const RUN_MS = 3_000;

/** What fifty clients of one lock saw. */
interface Contention {
  readonly perSecond: number;
  /** Acquisitions of the luckiest by those of the unluckiest. */
  readonly spread: number;
  readonly p99WaitMs: number;
}

/** Takes the lock, waiting as long as it must; answers how to give it back. */
type Take = (client: number) => Promise<() => Promise<unknown>>;

export async function contentionFigures(
  { locks, waiter, redis }: LockRoom,
  { rounds, note }: Surroundings,
): Promise<Metric[]> {
  const lock = parseLock('task:contended');
  const redlock = new Redlock([redis], { retryCount: -1, retryDelay: 10, retryJitter: 5 });
  const ways: Record<string, Take> = {
    reeve: async (client) => {
      const agent = `client-${client}`;
      const got = await waiter.acquire({ locks: [{ lock }], agent, waitMs: 60_000 });
      if (got.outcome !== 'granted') throw new Error(got.outcome);
      return () => locks.release({ locks: [lock], agent, lockId: got.lockId });
    },
    ideal: idealQueue(),
    'redis-semaphore': async () => {
      const mutex = new Mutex(redis, 'contended', { acquireTimeout: 60_000, retryInterval: 10, refreshInterval: 0 });
      await mutex.acquire();
      return () => mutex.release();
    },
    redlock: async () => {
      const held = await redlock.acquire(['contended'], 10_000);
      return () => held.release();
    },
  };
  const seen = Object.fromEntries(Object.keys(ways).map((name) => [name, [] as Contention[]]));
  for (let round = 1; round <= rounds; round++) {
    for (const [name, take] of Object.entries(ways)) {
      note(`one lock, ${name}, round ${round} of ${rounds}`);
      seen[name]?.push(await contend(take));
    }
  }
  const of = (name: string, figure: keyof Contention) => (seen[name] ?? []).map((each) => each[figure]);
  const peers = (figure: keyof Contention) => ({
    'redis-semaphore': of('redis-semaphore', figure),
    redlock: of('redlock', figure),
  });
  return [
    metric({
      name: `hand-overs, ${CLIENTS} clients, held ${HOLD_MS} ms (floor: a queue within the process)`,
      unit: 'per s',
      samples: of('reeve', 'perSecond'),
      floor: of('ideal', 'perSecond'),
      peers: peers('perSecond'),
      bar: { of: 'ratio', atLeast: 0.9 },
    }),
    metric({
      name: 'luckiest by unluckiest client',
      unit: 'times',
      samples: of('reeve', 'spread'),
      floor: [median(of('ideal', 'spread'))],
      peers: peers('spread'),
      bar: { of: 'value', atMost: 1.1 },
    }),
    metric({
      name: 'p99 of the wait',
      unit: 'ms',
      samples: of('reeve', 'p99WaitMs'),
      floor: of('ideal', 'p99WaitMs'),
      peers: peers('p99WaitMs'),
      bar: { of: 'ratio', atMost: 1.3 },
    }),
  ];
}

async function contend(take: Take): Promise<Contention> {
  const ends = performance.now() + RUN_MS;
  const counts = Array.from({ length: CLIENTS }, () => 0);
  const waits: number[] = [];
  let total = 0;
  const client = async (n: number) => {
    while (performance.now() < ends) {
      const asked = performance.now();
      const release = await take(n);
      const got = performance.now();
      // Who was still in line at the end is served, but after the bell.
      if (got < ends) {
        waits.push(got - asked);
        counts[n] = (counts[n] ?? 0) + 1;
        total++;
      }
      await pause(HOLD_MS);
      await release();
    }
  };
  await Promise.all(counts.map((_, n) => client(n)));
  waits.sort((a, b) => a - b);
  return {
    perSecond: (total / RUN_MS) * 1000,
    spread: Math.max(...counts) / Math.max(1, Math.min(...counts)),
    p99WaitMs: waits[Math.floor(waits.length * 0.99)] ?? Number.NaN,
  };
}

/** First come, first served, in one process and with nobody to ask. */
function idealQueue(): Take {
  let last: Promise<void> = Promise.resolve();
  return async () => {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    await before;
    return async () => resolve();
  };
}
