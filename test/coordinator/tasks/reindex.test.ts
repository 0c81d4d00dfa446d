import { expect, test } from 'vitest';
import { reindexOnce } from '../../../src/coordinator/tasks/reindex.ts';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const look = () => reindexOnce({ store: room.tasks.store, keyspace: room.keyspace });

async function aQueueInWork(): Promise<void> {
  await room.add(
    { task_id: 'TASK-9', priority: 1, files_to_modify: ['a.ts'] },
    { task_id: 'TASK-08', files_to_modify: ['a.ts'] },
    { task_id: 'TASK-8', depends_on: ['TASK-9'] },
    'TASK-1',
  );
  await room.tasks.work.claim({ agent: 'ann' });
  // Looks at what collides, and parks it.
  await room.tasks.work.claim({ agent: 'ben' });
}

/** All that is found again, and where. */
async function lists(): Promise<unknown> {
  const { client, keys, tasks } = room;
  return {
    known: await client.zrange(keys.knownTasks(), '0', '-1'),
    spellings: await client.hgetall(keys.spellings()),
    parked: await client.zrange(keys.parkedOrder(), '0', '-1', 'WITHSCORES'),
    pages: await tasks.pages.page({}, { limit: 10 }),
    ready: await tasks.pages.page({ station: 'ready' }, { limit: 10 }),
  };
}

test.each([
  [
    'a set, as it was before lists had an order',
    (key: string) => room.tasks.store.ids().then((ids) => asASet(key, ids)),
  ],
  ['nothing that could list tasks', (key: string) => room.client.set(key, 'mine')],
])('a list of all tasks that is %s is written anew, and work goes on', async (_, plant) => {
  await aQueueInWork();
  const before = await lists();
  const { client, keys } = room;
  await plant(keys.knownTasks());
  await client.del(keys.spellings(), keys.parkedOrder());
  expect(await look()).toBe(4);
  expect(await lists()).toEqual(before);
  expect(await look()).toBe(0);
  await room.add({ task_id: 'NEW', depends_on: ['1'] });
  expect(await client.smembers(keys.taskDependencies('NEW'))).toEqual(['TASK-1']);
  await room.tasks.work.complete({ task: 'TASK-9', agent: 'ann' });
  expect((await room.queue()).sort()).toEqual(['TASK-08', 'TASK-8']);
});

test('a queue that is empty, or lost, is left alone', async () => {
  expect(await look()).toBe(0);
});

async function asASet(key: string, ids: readonly string[]): Promise<unknown> {
  await room.client.del(key);
  return room.client.sadd(key, ...ids);
}
