import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { ReeveEvent } from '../../src/events/catalogue.ts';
import { GroupWork } from '../../src/events/group-work.ts';
import { silentLog } from '../../src/log.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';

let redis: RedisRoom;
beforeAll(async () => {
  redis = await aRedisRoom();
});
afterEach(() => redis.reset());
afterAll(() => redis[Symbol.asyncDispose]());

const numbers = (events: readonly ReeveEvent[]) => events.map(({ payload }) => Number(payload.n));
const fill = async (count: number, from = 0) => {
  for (let n = from; n < from + count; n++) await redis.events.append('lock:expired', { lock: 'x', n });
};

function aWorker(worker: string, handle: (events: readonly ReeveEvent[]) => Promise<void>) {
  const { connection, events } = redis;
  return new GroupWork({
    connection,
    events,
    group: 'webhook-dispatcher',
    worker,
    clock: systemClock,
    log: silentLog,
    handle,
  });
}

test('what could not be handled comes again, first and in order', async () => {
  let isBroken = true;
  const seen: number[] = [];
  const worker = aWorker('ann', async (events) => {
    if (isBroken) throw new Error('the database is away');
    seen.push(...numbers(events));
  });
  await fill(3);
  await expect(worker.workOnce()).rejects.toThrow('the database is away');
  await fill(2, 3);
  isBroken = false;
  expect(await worker.workOnce()).toBe(5);
  expect(seen).toEqual([0, 1, 2, 3, 4]);
  expect(await worker.workOnce()).toBe(0);
});

test('what a daemon took and never handled is handled by another', async () => {
  const seen: number[] = [];
  const dead = aWorker('dead', () => Promise.reject(new Error('killed')));
  const live = aWorker('live', async (events) => void seen.push(...numbers(events)));
  await fill(4);
  await expect(dead.workOnce()).rejects.toThrow('killed');
  expect(await live.workOnce()).toBe(0);
  expect(await live.workOnce(undefined, { leftLyingMs: 0 })).toBe(4);
  expect(seen).toEqual([0, 1, 2, 3]);
  expect(await dead.workOnce()).toBe(0);
});

test('two daemons share the work, and nothing is handled twice', async () => {
  const seen: number[] = [];
  const workers = ['ann', 'bob'].map((name) => aWorker(name, async (events) => void seen.push(...numbers(events))));
  await fill(500);
  await Promise.all(workers.map((worker) => worker.workOnce()));
  expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, n) => n));
});

test('a group that was lost with its Redis is made anew', async () => {
  const seen: number[] = [];
  const worker = aWorker('ann', async (events) => void seen.push(...numbers(events)));
  await fill(1);
  await worker.workOnce();
  await redis.client.flushall();
  await fill(1, 7);
  await expect(worker.workOnce()).rejects.toThrow('NOGROUP');
  await worker.workOnce();
  expect(seen).toEqual([0, 7]);
});
