import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ReeveEvent } from '../../src/events/catalogue.ts';
import { GroupConsumer } from '../../src/events/group.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { anEventRoom, noStrayKeys, targetOf } from '../support/rooms.ts';

let redis: TestRedis;
let observer: Redis;
beforeAll(async () => {
  redis = await startTestRedis();
  observer = redis.client();
});
beforeEach(() => redis.flush());
afterEach(() => noStrayKeys(observer));
afterAll(() => redis.stop());

async function aGroup() {
  const { connection, events } = await anEventRoom(targetOf(redis.options));
  const consumer = (name: string) =>
    new GroupConsumer({ connection, events, stream: 'lock', group: 'audit-logger', consumer: name });
  const fill = async (count: number) => {
    for (let n = 0; n < count; n++) await events.append('lock:expired', { lock: 'x', n });
  };
  return { events, consumer, fill };
}

const numbers = (events: readonly ReeveEvent[]) => events.map(({ payload }) => Number(payload.n));

test('a group gets every event once, however many share the work', async () => {
  const { consumer, fill } = await aGroup();
  const consumers = ['ann', 'bob', 'cy'].map(consumer);
  await fill(10);
  await Promise.all(consumers.map((one) => one.ensure()));
  await fill(50);
  const taken: number[] = [];
  await Promise.all(
    consumers.map(async (one) => {
      for (let some = await one.take(7); some.length > 0; some = await one.take(7)) {
        taken.push(...numbers(some));
        await one.acknowledge(some);
      }
    }),
  );

  expect(taken).toHaveLength(60);
  expect(await consumers[0]!.takeOver(0, 100)).toEqual([]);
});

test('what a consumer took and did not acknowledge comes to another, and then to nobody', async () => {
  const { consumer, fill } = await aGroup();
  const [ann, bob] = [consumer('ann'), consumer('bob')];
  await ann.ensure();
  await fill(5);
  const first = await ann.take(3);
  await ann.acknowledge(first.slice(0, 1));

  expect(numbers(await bob.takeOver(0, 10))).toEqual([1, 2]);
  expect(numbers(await bob.take(10))).toEqual([3, 4]);
  await bob.acknowledge([...(await bob.takeOver(0, 10))]);
  expect(await ann.takeOver(0, 10)).toEqual([]);
});

test('what a consumer took a moment ago is left to it', async () => {
  const { consumer, fill } = await aGroup();
  const [ann, bob] = [consumer('ann'), consumer('bob')];
  await ann.ensure();
  await fill(2);
  await ann.take(2);

  expect(await bob.takeOver(3_600_000, 10)).toEqual([]);
});

test('what a dead consumer left is found behind much that a live one holds', async () => {
  const { consumer, fill, events } = await aGroup();
  const [live, dead, heir] = [consumer('live'), consumer('dead'), consumer('heir')];
  await live.ensure();
  await fill(100);
  await live.take(98);
  const left = await dead.take(2);
  // As if it had lain for an hour.
  for (const { id } of left)
    await observer.xclaim(events.key('lock'), 'audit-logger', 'dead', 0, id, 'IDLE', 3_600_000);

  expect(numbers(await heir.takeOver(1_800_000, 2))).toEqual([98, 99]);
});

test('what was trimmed while it was pending is gone, and stops nobody', async () => {
  const { consumer, fill, events } = await aGroup();
  const [ann, bob] = [consumer('ann'), consumer('bob')];
  await ann.ensure();
  await fill(4);
  await ann.take(4);
  await observer.xtrim(events.key('lock'), 'MAXLEN', 1);

  expect(numbers(await bob.takeOver(0, 10))).toEqual([3]);
});

test('making a group twice keeps its place', async () => {
  const { consumer, fill } = await aGroup();
  const ann = consumer('ann');
  await ann.ensure();
  await fill(3);
  await ann.acknowledge(await ann.take(3));
  await ann.ensure();

  expect(await ann.take(3)).toEqual([]);
});
