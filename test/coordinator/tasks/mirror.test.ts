import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { TaskMirror } from '../../../src/coordinator/tasks/mirror.ts';
import { reset } from '../../../src/coordinator/tasks/reset.ts';
import type { Cursor } from '../../../src/events/cursor.ts';
import { silentLog } from '../../../src/log.ts';
import { aTaskRoom, expectSound, type TaskRoom } from './room.ts';

let room: TaskRoom;
let other: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
  other = await aTaskRoom('apollo');
});
afterAll(async () => {
  await room[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});
afterEach(() => expectSound(room));

let mirror: TaskMirror;
let now = 0;
let told: Cursor = {};
beforeEach(async () => {
  await room.reset();
  await other.redis.flush();
  now = 0;
  told = {};
  mirror = mirrorOf(room);
  await mirror.once();
});

const mirrorOf = ({ tasks }: TaskRoom) =>
  new TaskMirror({
    store: tasks.store,
    tail: { listen: () => () => {} },
    clock: { ...systemClock, now: () => now },
    log: silentLog,
  });

/** Hands on what was written to the streams since, as the daemon's tail does. */
async function follow(): Promise<void> {
  const { events, cursor } = await room.events.since(told, { limit: 1_000 });
  for (const event of events) mirror.hear(event);
  told = cursor;
  await mirror.once();
}
const pending = () => room.client.lrange('task:queue:pending', 0, -1);
const status = (id: string) => room.client.hgetall(`task:status:${id}`);

test('the list is the same list and each task has its status, from its admission to the end of what waited for it', async () => {
  await room.add('A', { task_id: 'B', depends_on: ['A'] }, 'C');
  await follow();
  expect(await pending()).toEqual(await room.client.lrange(room.keys.taskQueue(), 0, -1));
  expect(await pending()).toEqual(['C', 'A']);
  expect(await status('B')).toMatchObject({ task_id: 'B', status: 'blocked', agent_id: '' });
  await room.tasks.work.claim({ agent: 'ann' });
  await follow();
  expect(await status('A')).toMatchObject({ status: 'assigned', agent_id: 'ann' });
  await room.tasks.work.complete({ task: 'A', agent: 'ann' });
  await follow();
  expect(await status('A')).toMatchObject({ status: 'completed', agent_id: 'ann' });
  expect(await status('B')).toMatchObject({ status: 'pending' });
  expect(await pending()).toEqual(['C', 'B']);
  expect(await room.client.ttl('task:status:A')).toBeGreaterThan(89 * 86_400);
});

test('an emptied queue is an empty list', async () => {
  await room.add('A');
  await follow();
  await room.tasks.work.claim({ agent: 'ann' });
  await follow();
  expect(await room.client.exists('task:queue:pending')).toBe(0);
});

test('what others write there, and what has no event, is put right by the next look at it', async () => {
  await room.add('A');
  await follow();
  await room.client.hset('task:status:A', 'status', 'completed', 'mine', 'yes');
  await room.client.lpush('task:queue:pending', 'X');
  expect(await mirror.once()).toBe(0);
  now += 60_000;
  expect(await mirror.once()).toBe(1);
  expect(await status('A')).not.toHaveProperty('mine');
  expect(await status('A')).toMatchObject({ status: 'pending' });
  expect(await pending()).toEqual(['A']);
});

test('a look is a slice of all tasks, and writes nothing where nothing is wrong', async () => {
  await room.add(...Array.from({ length: 1_200 }, (_, at) => `T-${at}`));
  mirror = mirrorOf(room);
  const first = [await mirror.once(), await mirror.once(), await mirror.once(), await mirror.once()];
  expect(first).toEqual([500, 500, 200, 0]);
  expect(await status('T-1199')).toMatchObject({ status: 'pending' });
  await room.client.hset('task:status:T-700', 'status', 'completed');
  await room.client.config('RESETSTAT');
  const later: number[] = [];
  for (let round = 0; round < 3; round++) {
    now += 5_000;
    later.push(await mirror.once());
  }
  expect(later).toEqual([500, 500, 200]);
  expect(await status('T-700')).toMatchObject({ status: 'pending' });
  const written = await room.client.info('commandstats');
  expect(written).toMatch(/cmdstat_hset:calls=1,/);
  expect(written).not.toContain('cmdstat_copy');
});

test('what was not copied because Redis was full is copied next', async () => {
  await room.add('A');
  await follow();
  await room.tasks.work.claim({ agent: 'ann' });
  await room.client.config('SET', 'maxmemory', '1');
  await expect(follow()).rejects.toThrow(/memory|OOM/i);
  await room.client.config('SET', 'maxmemory', '0');
  expect(await mirror.once()).toBe(1);
  expect(await status('A')).toMatchObject({ status: 'assigned' });
});

test('an event that anybody wrote, about anything, does no harm', async () => {
  await room.add('A');
  await room.client.xadd(room.keys.coordinationEvents(), '*', 'event_type', 'task_completed', 'task_id', 'a:b *');
  await follow();
  expect(await status('A')).toMatchObject({ status: 'pending' });
});

test('another project mirrors its tasks under their full names, and leaves the list alone', async () => {
  await other.add('A');
  expect(await mirrorOf(other).once()).toBe(1);
  expect(await other.client.hget('task:status:apollo.A', 'status')).toBe('pending');
  expect(await other.client.exists('task:queue:pending')).toBe(0);
});

test('a reset takes the mirror along', async () => {
  await room.add('A');
  await follow();
  await reset(room.tasks, 'tasks');
  expect(await room.client.exists('task:status:A', 'task:queue:pending')).toBe(0);
});
