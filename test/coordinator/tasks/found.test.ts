import { describe, expect, test } from 'vitest';
import { reset } from '../../../src/coordinator/tasks/reset.ts';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import type { WantedTasks } from '../../../src/coordinator/tasks/task-pages.ts';
import { aTask, aTaskRoom, inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const admit = (author: string, ...tasks: Parameters<typeof aTask>[0][]) =>
  room.tasks.admit(tasks.map((task) => ({ task: aTask(task), phase: 'open', author })));
const found = async (wanted: WantedTasks) =>
  (await room.tasks.pages.page(wanted, { limit: 100 })).items.map(({ task_id }) => task_id);

const DATABASE = [{ type: 'database', id: 'prod-db-01', mode: 'exclusive' }] as never;

test('a task is found by its author, by each thing it works on, and by its tags, under the names of the contract', async () => {
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
  expect(await found({})).toEqual(['A', 'B']);
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

describe('a page of tasks', () => {
  /** All pages of so many, as somebody reads them who asks for the next each time. */
  async function pages(wanted: WantedTasks, limit: number): Promise<string[][]> {
    const read: string[][] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await room.tasks.pages.page(wanted, { limit, cursor });
      read.push(page.items.map(({ task_id }) => task_id));
      cursor = page.next;
      if (!cursor) return read;
    }
  }
  const ids = (count: number) => Array.from({ length: count }, (_, at) => `T-${at + 1}`);

  test('is in the order of the source, and the next begins where it ended', async () => {
    await room.add(...ids(7));
    expect(await pages({}, 3)).toEqual([['T-1', 'T-2', 'T-3'], ['T-4', 'T-5', 'T-6'], ['T-7']]);
    expect(await room.tasks.pages.page({}, { limit: 7 })).toEqual({ items: expect.anything(), total: 7 });
    expect(await pages({ text: 't-' }, 3)).toEqual([['T-1', 'T-2', 'T-3'], ['T-4', 'T-5', 'T-6'], ['T-7']]);
  });

  test('goes on although what was last on the one before is not there any more', async () => {
    await room.add(...ids(5));
    const first = await room.tasks.pages.page({ status: 'pending' }, { limit: 2 });
    await room.tasks.work.claim({ agent: 'ann', task: 'T-2' });
    const second = await room.tasks.pages.page({ status: 'pending' }, { limit: 2, cursor: first.next });
    expect(second.items.map(({ task_id }) => task_id)).toEqual(['T-3', 'T-4']);
    // Many of one second, of which the index of the lifecycle has no finer order than their names.
    const done = await room.tasks.pages.page({ station: 'ready', author: 'api' }, { limit: 2 });
    await room.tasks.work.claim({ agent: 'bob', task: 'T-3' });
    const rest = await room.tasks.pages.page({ station: 'ready', author: 'api' }, { limit: 2, cursor: done.next });
    expect(rest.items.map(({ task_id }) => task_id)).toEqual(['T-4', 'T-5']);
  });

  test('has each task at its station, and every task at one', async () => {
    await room.add(
      { task_id: 'READY', agent_type: 'codex', epic: 'E1' },
      { task_id: 'WAITS', depends_on: ['READY'] },
      { task_id: 'RUNS', files_to_modify: ['a.ts'] },
      { task_id: 'PARKED', files_to_modify: ['a.ts'] },
      { task_id: 'DONE', phase: 'completed' },
      { task_id: 'FAILED', phase: 'failed' },
      { task_id: 'OFF', phase: 'cancelled' },
    );
    await room.tasks.admit([{ task: aTask({ task_id: 'DRAFT' }), phase: 'open', isDraft: true }]);
    await room.tasks.work.claim({ agent: 'ann', task: 'RUNS' });
    await room.tasks.work.claim({ agent: 'bob', task: 'PARKED' });
    expect(await found({ station: 'ready' })).toEqual(['READY', 'PARKED']);
    expect(await found({ station: 'waiting' })).toEqual(['WAITS']);
    expect(await found({ station: 'working' })).toEqual(['RUNS']);
    expect(await found({ station: 'done' })).toEqual(['DONE']);
    expect(await found({ station: 'failed' })).toEqual(['FAILED']);
    expect(await found({ station: 'cancelled' })).toEqual(['OFF']);
    expect(await found({ station: 'review' })).toEqual(['DRAFT']);
    expect(await found({ status: 'blocked' })).toEqual(['DRAFT', 'WAITS']);
    expect(await found({ status: 'failed' })).toEqual(['FAILED', 'OFF']);
    expect(await found({ agent: 'ann' })).toEqual(['RUNS']);
    expect(await found({ agent: 'bob' })).toEqual([]);
    expect(await found({ type: 'Codex' })).toEqual(['READY']);
    expect(await found({ epic: 'E1', text: 'rea' })).toEqual(['READY']);
  });

  test('of another project has none of ours, though the indexes of the lifecycle are shared', async () => {
    await using web = await aTaskRoom('web');
    await web.add('A', { task_id: 'B', phase: 'completed' });
    const done = await web.tasks.pages.page({ station: 'done' }, { limit: 10 });
    expect(done.items).toMatchObject([{ task_id: 'B' }]);
    expect((await web.tasks.pages.page({ author: 'api' }, { limit: 1 })).next).toBeDefined();
  });

  test('costs what it shows, however many tasks there are', async () => {
    await room.add(...ids(400));
    const reads = async (wanted: WantedTasks) => {
      await room.client.config('RESETSTAT');
      await room.tasks.pages.page(wanted, { limit: 5 });
      const stats = await room.client.info('commandstats');
      return Number(/cmdstat_hmget:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    await room.tasks.work.claim({ agent: 'ann' });
    expect(await reads({})).toBeLessThanOrEqual(12);
    expect(await reads({ agent: 'ann' })).toBeLessThanOrEqual(2);
  });
});
