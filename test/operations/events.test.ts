import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventOperations } from '../../src/operations/events.ts';
import { ACCESS, type Access, type Context, type Followed, follow, invoke } from '../../src/operations/operation.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { type TestRooms, targetOf, theRooms } from '../support/rooms.ts';
import { until } from '../support/until.ts';

const [list] = eventOperations;
let redis: TestRedis;
let writer: Redis;
beforeAll(async () => {
  redis = await startTestRedis();
  writer = redis.client();
});
beforeEach(() => redis.flush());
afterAll(() => redis.stop());

async function aFollower(input: object) {
  const rooms: TestRooms = await theRooms(targetOf(redis.options));
  const over = new AbortController();
  const caller = { id: 'ann', access: new Set(Object.keys(ACCESS) as Access[]) };
  const context: Context = { rooms, caller, operations: [], signal: over.signal };
  const told = follow(list!, context, input)![Symbol.asyncIterator]();
  const write = async (from: number, to: number) => {
    const pipeline = writer.pipeline();
    for (let n = from; n < to; n++)
      pipeline.xadd(rooms.events.key('lock'), '*', 'event', 'e', 'payload', JSON.stringify({ n }));
    await pipeline.exec();
  };
  const heardByTail = async (n: number) => {
    let last = -1;
    const stop = rooms.tail.listen(({ payload }) => {
      last = Number(payload.n);
    });
    await write(n, n + 1);
    await until('the tail has passed it', () => last === n);
    stop();
  };
  const next = async () =>
    Number(((await told.next()).value as Followed & { item: { payload: { n: number } } }).item.payload.n);
  return { rooms, context, write, next, heardByTail, end: () => over.abort() };
}

test('a follower that stops reading for a while loses nothing, however much comes meanwhile', async () => {
  const { write, next, heardByTail, end } = await aFollower({ since: 'lock.0-1' });
  await write(0, 300);
  const seen = [await next()];
  // It stands still among the first page while far more comes than is kept waiting for it.
  await write(300, 2_300);
  await heardByTail(2_300);
  while (seen.length < 1_301) seen.push(await next());
  // And in the middle of what was kept something new comes, which must not be told before the rest.
  await heardByTail(2_301);
  while (seen.length <= 2_301) seen.push(await next());
  end();

  expect(seen).toEqual(Array.from({ length: 2_302 }, (_, n) => n));
});

test('listing and following give cursors that each other takes up', async () => {
  const { context, write, next, end } = await aFollower({ since: 'lock.0-1' });
  await write(0, 10);
  const page = (await invoke(list!, context, { since: 'lock.0-1', limit: 4, stream: ['lock'] })) as {
    next_cursor: string;
    more: boolean;
  };
  expect(page.more).toBe(true);
  const rest = (await invoke(list!, context, { since: page.next_cursor, stream: ['lock'] })) as {
    items: { payload: { n: number } }[];
  };

  expect(rest.items.map(({ payload }) => payload.n)).toEqual([4, 5, 6, 7, 8, 9]);
  expect(await next()).toBe(0);
  end();
});
