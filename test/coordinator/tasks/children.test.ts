import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import { silentLog } from '../../../src/log.ts';
import { inATaskRoom, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const claim = (agent: string, task?: string) => room.tasks.work.claim({ agent, task });
const DATABASE = [{ type: 'database', id: 'prod', mode: 'exclusive' }] as never;

/** Ann works on PARENT, which has the database and src/; a migration of the same database is part of it. */
async function aFamily(): Promise<void> {
  await room.add({ task_id: 'PARENT', resources: DATABASE, files_to_modify: ['src/'] }, 'OTHER');
  expect(await claim('ann', 'PARENT')).toMatchObject({ outcome: 'claimed' });
  const own = { parent_task_id: 'PARENT', resources: DATABASE, files_to_modify: ['src/a.ts', 'docs/'] };
  await room.add({ task_id: 'CHILD', priority: 9, ...own });
}

test('the holder of a parent gets the child first, through its own locks and without a second place', async () => {
  await aFamily();
  expect(await claim('ann')).toMatchObject({ outcome: 'claimed', again: false, task: { task_id: 'CHILD' } });
  const { client, keys } = room;
  expect(await client.zcard(keys.agentCapacityLeases('ann'))).toBe(1);
  expect((await client.hkeys(keys.agentClaims('ann'))).sort()).toEqual(['CHILD', 'PARENT']);
  expect(await client.hget(keys.resourceLock('file', 'docs'), 'exclusive_holder')).toBe('ann');
  expect(await client.exists(keys.resourceLock('file', 'src%2Fa.ts'))).toBe(1);

  expect(await room.tasks.work.complete({ task: 'CHILD', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
  expect(await client.exists(keys.resourceLock('database', 'prod'))).toBe(1);
  expect(await client.exists(keys.resourceLock('file', 'docs'))).toBe(0);
  expect(await client.zcard(keys.agentCapacityLeases('ann'))).toBe(1);
  expect(await room.tasks.work.complete({ task: 'PARENT', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
  expect(await client.zcard(keys.heldExclusive())).toBe(0);
  expect(await client.zcard(keys.agentCapacityLeases('ann'))).toBe(0);
});

test('nobody else gets it while the parent is worked on; then anyone does', async () => {
  await aFamily();
  expect(await room.queue()).toEqual(['OTHER']);
  expect(await claim('bob', 'CHILD')).toEqual({ outcome: 'busy', why: 'reserved', holder: 'ann' });
  expect(await claim('bob')).toMatchObject({ task: { task_id: 'OTHER' } });
  expect(await claim('cat')).toMatchObject({ outcome: 'none' });
  await room.tasks.work.complete({ task: 'PARENT', agent: 'ann' });
  expect(await room.queue()).toEqual(['CHILD']);
  expect(await claim('cat')).toMatchObject({ outcome: 'claimed', task: { task_id: 'CHILD' } });
  expect(await room.client.zcard(room.keys.agentCapacityLeases('cat'))).toBe(1);
});

test('a child whose parent went back to the queue is a task like any other', async () => {
  await aFamily();
  await room.tasks.work.drop({ task: 'PARENT', agent: 'ann' }, 'not now');
  expect(await claim('bob', 'CHILD')).toMatchObject({ outcome: 'claimed' });
  expect(await claim('ann', 'PARENT')).toMatchObject({ outcome: 'busy', why: 'collision', holder: 'CHILD' });
});

test('what somebody outside the family works on is in the way of a child as of any other', async () => {
  await aFamily();
  await room.add({ task_id: 'DOCS', files_to_modify: ['docs/index.md'] });
  await claim('bob', 'DOCS');
  expect(await claim('ann')).toMatchObject({ outcome: 'claimed', again: true, task: { task_id: 'PARENT' } });
  await room.tasks.work.complete({ task: 'DOCS', agent: 'bob' });
  expect(await claim('ann')).toMatchObject({ outcome: 'claimed', task: { task_id: 'CHILD' } });
});

test('a beat for the child keeps the parent, too', async () => {
  await aFamily();
  await claim('ann', 'CHILD');
  for (let beats = 0; beats < 4; beats++) {
    room.shift(600_000);
    expect(await room.tasks.work.heartbeat({ task: 'CHILD', agent: 'ann' })).toMatchObject({ outcome: 'noted' });
    expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
  }
  expect(await room.tasks.work.complete({ task: 'PARENT', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
  expect(await room.tasks.work.heartbeat({ task: 'CHILD', agent: 'ann' })).toMatchObject({ outcome: 'noted' });
  expect(await room.tasks.work.complete({ task: 'CHILD', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
  expect(await room.client.zcard(room.keys.heldExclusive())).toBe(0);
});

test('a child may come before its parent, have children of its own, and claims forget families that have ended', async () => {
  await room.add({ task_id: 'C', parent_task_id: 'B' }, { task_id: 'B', parent_task_id: 'A' }, 'A', 'Z');
  expect(await claim('ann', 'A')).toMatchObject({ outcome: 'claimed' });
  for (const id of ['B', 'C']) expect(await claim('ann')).toMatchObject({ outcome: 'claimed', task: { task_id: id } });
  for (const task of ['C', 'B', 'A']) await room.tasks.work.complete({ task, agent: 'ann' });
  const { tasks, locks, events, keyspace } = room;
  const more = { clock: systemClock, log: silentLog, limits: () => USUAL };
  await new Reconciler({ tasks, locks, events, keyspace, ...more }).once();
  expect(await room.client.exists(room.keys.parentTasks(), room.keys.childTasks('A'), room.keys.childTasks('B'))).toBe(
    0,
  );
});
