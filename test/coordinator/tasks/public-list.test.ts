import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

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

test('a task that a plain client has taken is its own, also where it would collide with running work', async () => {
  await room.add({ task_id: 'A', files_to_modify: ['x.ts'] }, { task_id: 'B', files_to_modify: ['x.ts'] });
  expect(await room.tasks.work.claim({ agent: 'ann' })).toMatchObject({ task: { task_id: 'A' } });
  expect(await room.plain.rpop(room.keys.taskQueue())).toBe('B');
  expect(await room.tasks.work.claim({ agent: 'ben' })).toMatchObject({ outcome: 'none' });
  expect(await room.status('B')).toBe('assigned');
  await room.tasks.work.complete({ task: 'A', agent: 'ann' });
  expect(await room.queue()).toEqual([]);
});

test('each lease of a plain client ends in the events, also one whose lock was gone before anyone looked', async () => {
  await room.add('A');
  const lockEvents = async () => {
    const { events } = await room.events.since({}, { streams: ['lock'] });
    return events.map(({ event, payload }) => `${event} ${String(payload.lock_id)}`);
  };
  await room.tasks.judge('A', { to: 'running' }, 'a plain client');
  const first = await room.client.hget(room.keys.taskLock('A'), 'lock_id');
  await room.client.del(room.keys.taskLock('A'));
  await room.tasks.work.drop({ task: 'A', agent: 'raw.A' }, 'back');
  await room.tasks.judge('A', { to: 'running' }, 'a plain client');
  const second = await room.client.hget(room.keys.taskLock('A'), 'lock_id');
  expect(await lockEvents()).toEqual([`lock:acquired ${first}`, `lock:expired ${first}`, `lock:acquired ${second}`]);
});
