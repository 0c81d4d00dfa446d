import { expect, test } from 'vitest';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const ids = (claimed: readonly { task: { task_id: string } }[]) => claimed.map(({ task }) => task.task_id).sort();

test('several tasks are claimed at once, each with a lease of its own, and what collides is left', async () => {
  await room.add('A', { task_id: 'B', files_to_modify: ['src'] }, { task_id: 'C', files_to_modify: ['src/c.ts'] }, 'D');
  const { claimed, rest } = await room.tasks.work.claimSeveral({ agent: 'ann', places: 10 }, 10);

  expect(ids(claimed)).toEqual(['A', 'B', 'D']);
  expect(new Set(claimed.map(({ lease }) => lease.lock_id)).size).toBe(3);
  expect(rest).toMatchObject({ outcome: 'none' });
});

test('an agent gets no more than it has places for, and then what it has', async () => {
  await room.add('A', 'B', 'C');
  await room.locks.setCapacity('ann', { maxTasks: 2 });
  const first = await room.tasks.work.claimSeveral({ agent: 'ann' }, 3);
  expect(ids(first.claimed)).toEqual(['A', 'B']);
  const second = await room.tasks.work.claimSeveral({ agent: 'ann' }, 3);
  expect(second.claimed.every(({ again }) => again)).toBe(true);
  expect(await room.status('C')).toBe('pending');
});

test('several are ended at once, and each is told apart', async () => {
  await room.add('A', { task_id: 'B', depends_on: ['A', 'C'] }, 'C', 'D');
  const { work } = room.tasks;
  await work.claimSeveral({ agent: 'ann', places: 3 }, 3);
  await work.drop({ task: 'D', agent: 'ann' }, 'not mine');
  await work.claim({ agent: 'ben', task: 'D' });
  const ends = ['A', 'C', 'A', 'D', 'NONE'].map((task) => ({ lease: { task, agent: 'ann' }, result: { notes: task } }));

  const outcomes = await work.completeSeveral(ends);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['completed', 'completed', 'already', 'late', 'unknown']);
  expect(outcomes.flatMap((one) => (one.outcome === 'completed' ? one.released : []))).toEqual(['B']);
  expect(await room.status('D')).toBe('assigned');
});

test('agents that ask in the same moment get different tasks, whoever they are', async () => {
  const names = Array.from({ length: 40 }, (_, n) => `T-${n}`);
  await room.add(...names);
  const agents = Array.from({ length: 50 }, (_, n) => `agent-${n}`);
  const outcomes = await Promise.all(agents.map((agent) => room.tasks.work.claim({ agent, leaseClass: 'process' })));
  const claimed = outcomes.filter((one) => one.outcome === 'claimed');

  expect(ids(claimed)).toEqual(names.toSorted());
  expect(outcomes.filter(({ outcome }) => outcome === 'none')).toHaveLength(10);
});
