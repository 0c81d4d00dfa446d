import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  room.limits = USUAL;
  await room.reset();
});
afterEach(() => expectSound(room));

const id = (text: string) => text as TaskId;

test('a ready task that is opened again, or loses a dependency, is on the list once', async () => {
  await room.add('DONE', { task_id: 'A', depends_on: ['DONE'] }, 'B');
  await room.tasks.judge('DONE', { to: 'completed' }, 'a person');
  expect(await room.queue()).toEqual(['A', 'B']);
  await room.tasks.reopen('A', 'again', 'a person');
  await room.tasks.judge('A', { to: 'open' }, 'a person');
  expect(await room.queue()).toEqual(['A', 'B']);
  await room.tasks.amend([{ task_id: id('A'), set: { depends_on: [] } }]);
  expect(await room.queue()).toEqual(['A', 'B']);
});

test('a task that a plain client has taken is not offered again because its priority or its dependencies are edited', async () => {
  await room.add({ task_id: 'A', priority: 1 }, { task_id: 'B', priority: 2 });
  expect(await room.plain.rpop(room.keys.taskQueue())).toBe('A');
  await room.tasks.amend([{ task_id: id('A'), set: { priority: 3, depends_on: [] } }]);
  expect(await room.queue()).toEqual(['B']);
  expect(await room.tasks.work.claim({ agent: 'ann' })).toMatchObject({ task: { task_id: 'B' } });
  expect(await room.tasks.work.claim({ agent: 'ben' })).toMatchObject({ outcome: 'none' });
  expect(await room.status('A')).toBe('assigned');
  await room.tasks.work.complete({ task: 'B', agent: 'ann' });
});
