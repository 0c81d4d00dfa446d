import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { foundTasks } from '../../../src/coordinator/tasks/found.ts';
import { reset } from '../../../src/coordinator/tasks/reset.ts';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import { aTask, aTaskRoom, expectSound, type TaskRoom } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(() => room.reset());
afterEach(() => expectSound(room));

const admit = (author: string, ...tasks: Parameters<typeof aTask>[0][]) =>
  room.tasks.admit(tasks.map((task) => ({ task: aTask(task), phase: 'open', author })));
const found = (by: Parameters<typeof foundTasks>[1]) => foundTasks(room.tasks.store, by);

const DATABASE = [{ type: 'database', id: 'prod-db-01', mode: 'exclusive' }] as never;

test('a task is found by its author, by each thing it works on, and by its tags, under the names of the seed', async () => {
  await admit('ann', { task_id: 'A', resources: DATABASE, files_to_modify: ['src/a b.ts'], tags: ['hot fix'] });
  await admit('bob', { task_id: 'B', resources: DATABASE });
  const range = (key: string) => room.client.zrange(key, '0', '-1');
  expect(await range('ade:task:index:state:APPROVED')).toEqual(['A', 'B']);
  expect(await range('ade:task:index:author:ann')).toEqual(['A']);
  expect(await range('ade:task:index:resource:database:prod-db-01')).toEqual(['A', 'B']);
  expect(await range('ade:task:index:resource:file:src%2Fa%20b.ts')).toEqual(['A']);
  expect(await range('ade:task:index:tag:hot%20fix')).toEqual(['A']);
  expect(await room.client.ttl('ade:task:index:author:ann')).toBeGreaterThan(89 * 86_400);
  expect(await found({ author: 'bob' })).toEqual(['B']);
  expect(await found({ resource: 'database:prod-db-01', author: 'ann' })).toEqual(['A']);
  expect(await found({ resource: './src/a b.ts' })).toEqual(['A']);
  expect(await found({ tag: 'hot fix' })).toEqual(['A']);
  expect(await found({ tag: 'cold' })).toEqual([]);
  expect(await found({})).toBeUndefined();
});

test('an edit moves it; what it did not touch stays', async () => {
  await admit('ann', { task_id: 'A', resources: DATABASE, tags: ['x', 'y'] });
  const id = 'A' as TaskId;
  await room.tasks.amend([{ task_id: id, set: { files_to_modify: ['a.ts'], resources: [], tags: ['y'] } }]);
  expect(await found({ resource: 'database:prod-db-01' })).toEqual([]);
  expect(await found({ resource: 'file:a.ts' })).toEqual(['A']);
  expect(await found({ tag: 'x' })).toEqual([]);
  expect(await found({ tag: 'y', author: 'ann' })).toEqual(['A']);
});

test('a reset leaves nothing of it behind', async () => {
  await admit('ann', { task_id: 'A', resources: DATABASE, tags: ['x'] });
  await room.tasks.work.claim({ agent: 'ann' });
  await reset(room.tasks, 'tasks');
  const left = await room.client.keys('ade:task:*');
  expect(left).toEqual([]);
});
