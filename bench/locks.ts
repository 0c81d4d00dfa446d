import { setTimeout as pause } from 'node:timers/promises';
import { Redlock } from '@sesamecare-oss/redlock';
import { Mutex } from 'redis-semaphore';
import { parseLock } from '../src/coordinator/locks/lock.ts';
import { sweepOnce } from '../src/coordinator/locks/sweeper.ts';
import { type Bench, interleaved, type Metric, median, metric, type Surroundings } from './harness.ts';
import { contentionFigures } from './lock-contention.ts';
import { type LockRoom, openLockRoom } from './lock-room.ts';

const CYCLES = { 50: 15_000, 1: 2_000 } as const;
const MANY = 50_000;
const FEW = 100;
const OVERDUE = 1_000;
const LEASE_MS = 30_000;

/** Taking and giving back, alone and in a crowd, and what fifty thousand of them weigh. */
export const locks: Bench = {
  name: 'locks',
  summary:
    'acquire and release against peers, hand-over against an ideal queue, and many locks at once; one process, no append-only file',
  run: async (surroundings) => [
    ...(await inRoom((room) => uncontendedFigures(room, surroundings, 50))),
    ...(await inRoom((room) => uncontendedFigures(room, surroundings, 1))),
    ...(await inRoom((room) => contentionFigures(room, surroundings))),
    ...(await crowdFigures(surroundings)),
  ],
};

async function inRoom(measure: (room: LockRoom) => Promise<Metric[]>): Promise<Metric[]> {
  await using room = await openLockRoom();
  return await measure(room);
}

async function uncontendedFigures(room: LockRoom, { rounds, note }: Surroundings, clients: 50 | 1): Promise<Metric[]> {
  note(`acquire and release, ${clients} at a time`);
  const { redis } = room;
  const sha = (await redis.script('LOAD', 'return 1')) as string;
  const redlock = new Redlock([redis], { retryCount: 0 });
  const server: number[] = [];
  const rate = async (cycle: (client: number) => Promise<unknown>) => {
    let left: number = CYCLES[clients];
    const began = performance.now();
    const client = async (_: unknown, n: number) => {
      while (left-- > 0) await cycle(n);
    };
    await Promise.all(Array.from({ length: clients }).map(client));
    return CYCLES[clients] / ((performance.now() - began) / 1000);
  };
  const { floor, semaphore, lock, reeve } = await interleaved(rounds, {
    floor: () => rate(async () => (await redis.evalsha(sha, 1, 'a')) && redis.evalsha(sha, 1, 'a')),
    semaphore: () =>
      rate(async (n) => {
        const mutex = new Mutex(redis, `free-${n}`, { lockTimeout: LEASE_MS, refreshInterval: 0 });
        await mutex.acquire();
        await mutex.release();
      }),
    lock: () => rate(async (n) => (await redlock.acquire([`free-${n}`], LEASE_MS)).release()),
    reeve: async () => {
      await redis.config('RESETSTAT');
      const result = await rate((n) => takeAndGive(room, `free-${n}`, `agent-${n}`));
      const stats = await redis.info('commandstats');
      server.push(Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1]));
      return result;
    },
  });
  const bar = { of: 'ratio', atLeast: clients === 50 ? 0.65 : 0.85 } as const;
  const at = `${clients} at a time`;
  const informed = { of: 'value', atMost: 1_000_000 } as const;
  return [
    metric({
      name: `acquire and release, ${at}`,
      unit: 'per s',
      samples: reeve,
      peers: { 'redis-semaphore': semaphore, redlock: lock },
      bar,
    }),
    metric({ name: `floor: two empty scripts, ${at}`, unit: 'per s', samples: floor, bar: informed }),
    metric({ name: `time of a script in Redis, ${at}`, unit: 'µs', samples: server, bar: informed }),
  ];
}

async function takeAndGive({ locks: room }: LockRoom, task: string, agent: string): Promise<void> {
  const lock = parseLock(`task:${task}`);
  const got = await room.acquire({ locks: [{ lock }], agent });
  if (got.outcome !== 'granted') throw new Error(got.outcome);
  await room.release({ locks: [lock], agent, lockId: got.lockId });
}

/** Each round fills a server of its own, so that nothing is left of the one before. */
async function crowdFigures({ rounds, note }: Surroundings): Promise<Metric[]> {
  const figures = { bytes: [], few: [], many: [], small: [], large: [] } as Record<string, number[]>;
  for (let round = 1; round <= rounds; round++) {
    note(`${MANY} locks, round ${round} of ${rounds}`);
    await using room = await openLockRoom();
    await hold(room, 'warm', FEW);
    figures.few!.push(await p99(room));
    await hold(room, 'late', OVERDUE, 20);
    await pause(30);
    figures.small!.push(await sweepMs(room));
    const before = await usedMemory(room);
    await hold(room, 'held', MANY);
    figures.bytes!.push(((await usedMemory(room)) - before) / MANY);
    figures.many!.push(await p99(room));
    await hold(room, 'over', OVERDUE, 20);
    await pause(30);
    figures.large!.push(await sweepMs(room));
  }
  const { bytes, few, many, small, large } = figures as Record<'bytes' | 'few' | 'many' | 'small' | 'large', number[]>;
  return [
    metric({ name: `memory of one of ${MANY} locks`, unit: 'B', samples: bytes, bar: { of: 'value', atMost: 1300 } }),
    metric({
      name: `p99 of an acquire with ${MANY} held (floor: with ${FEW})`,
      unit: 'ms',
      samples: many,
      floor: [median(few)],
      bar: { of: 'ratio', atMost: 1.5 },
    }),
    metric({
      name: `sweep of ${OVERDUE} among ${MANY} (floor: among ${FEW})`,
      unit: 'ms',
      samples: large,
      floor: [median(small)],
      bar: { of: 'ratio', atMost: 1.5 },
    }),
  ];
}

async function hold({ locks: room }: LockRoom, name: string, count: number, leaseMs = 900_000): Promise<void> {
  const AT_ONCE = 200;
  for (let from = 0; from < count; from += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, n) => from + n);
    await Promise.all(
      batch.map((n) =>
        room.acquire({
          locks: [{ lock: parseLock(`task:${name}-${String(n).padStart(8, '0')}`) }],
          agent: `agent-${n % 500}`,
          purpose: 'apply a migration',
          leaseMs,
        }),
      ),
    );
  }
}

/** Of single acquires, one after the other. */
async function p99(room: LockRoom): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < 2_000; n++) {
    const lock = parseLock(`task:probe-${n}`);
    const began = performance.now();
    const got = await room.locks.acquire({ locks: [{ lock }], agent: 'probe' });
    times.push(performance.now() - began);
    if (got.outcome === 'granted') await room.locks.release({ locks: [lock], agent: 'probe', lockId: got.lockId });
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

async function sweepMs(room: LockRoom): Promise<number> {
  const began = performance.now();
  const { expired } = await sweepOnce(room.locks);
  if (expired !== OVERDUE) throw new Error(`${expired} expired`);
  return performance.now() - began;
}

async function usedMemory({ redis }: LockRoom): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}
