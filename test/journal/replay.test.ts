import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { taskSchema } from '../../src/coordinator/tasks/task.ts';
import { LOCAL } from '../../src/identity/caller.ts';
import { replayLock } from '../../src/journal/replay-lock.ts';
import { silentLog } from '../../src/log.ts';
import { operations } from '../../src/operations/index.ts';
import { replayOnce } from '../../src/operations/replay.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { targetOf, theRooms } from '../support/rooms.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
beforeEach(() => redis.flush());
afterAll(() => redis.stop());

const CALLER = JSON.stringify({ id: 'zoe', roles: ['admin'], access: [...LOCAL.access], own: [], door: 'http' });

const aTask = (task_id: string, title: string) => taskSchema.parse({ task_id, title, priority: 1, origin: 'api' });

async function aReplay() {
  const rooms = await theRooms(targetOf(redis.options));
  const { connection } = rooms;
  const keys = rooms.tasks.store.keys;
  const options = { rooms, operations, lock: replayLock(connection, keys, 'test'), log: silentLog };
  const note = (operation: string, input: object, isUncertain = false) =>
    rooms.journal.note({ operation, caller: CALLER, input, isUncertain });
  const add = (task: string) => note('task.add', { task, title: task, priority: 5, submit: false });
  const outcomes = async () =>
    (await rooms.journal.list(50)).map(({ state, outcome }) => `${state} ${outcome ?? ''}`).toReversed();
  return { rooms, options, note, add, outcomes };
}

test('what waits is done in order, on behalf of who asked, and once', async () => {
  const { rooms, options, add, note, outcomes } = await aReplay();
  await add('J-1');
  await note('task.edit', { task: 'J-1', description: 'after it was made' });
  await add('J-2');
  expect(await replayOnce(options)).toEqual({ done: 3, parked: 0 });
  expect(await replayOnce(options)).toEqual({ done: 0, parked: 0 });
  expect(await outcomes()).toEqual(['done done', 'done done', 'done done']);
  const made = await rooms.tasks.views.detail('J-1');
  expect(made?.task).toMatchObject({ description: 'after it was made' });
  expect(await rooms.connection.commands.hget(rooms.tasks.store.keys.taskMetadata('J-1'), 'author_id')).toBe('zoe');
});

test('a daemon that died after doing it and before saying so does it once all the same', async () => {
  const { rooms, options, add, outcomes } = await aReplay();
  await add('J-1');
  await replayOnce(options);
  // As if the last word had never been written.
  await rooms.store.db.updateTable('journal').set({ state: 'waiting', outcome: null }).execute();
  expect(await replayOnce(options)).toEqual({ done: 1, parked: 0 });
  expect(await outcomes()).toEqual(['done done before: TASK_BUSY']);
});

test('a task of an id that somebody else has taken meanwhile is put aside', async () => {
  const { rooms, options, add, outcomes } = await aReplay();
  await add('J-1');
  await rooms.tasks.admit([{ task: aTask('J-1', 'other'), phase: 'open' }]);
  expect(await replayOnce(options)).toEqual({ done: 0, parked: 1 });
  expect(await outcomes()).toEqual([expect.stringMatching(/^parked TASK_BUSY: /)]);
});

test('a result that comes too late is kept beside, as every late one', async () => {
  const { rooms, options, note, outcomes } = await aReplay();
  await rooms.tasks.admit([{ task: aTask('J-1', 'one'), phase: 'open' }]);
  await note('work.complete', { task: 'J-1', agent: 'ann', lock_id: 'gone', fencing_token: '1' });
  expect(await replayOnce(options)).toEqual({ done: 0, parked: 1 });
  expect(await outcomes()).toEqual([expect.stringMatching(/^parked LEASE_LOST: /)]);
});

test('no more than the most may wait', async () => {
  const { rooms, add } = await aReplay();
  const { Journal } = await import('../../src/journal/journal.ts');
  const full = new Journal({ store: rooms.store, clock: rooms.clock, most: () => 1 });
  await add('J-1');
  expect(await full.note({ operation: 'task.add', caller: CALLER, input: {}, isUncertain: false })).toBeUndefined();
});
