import { describe, expect, test } from 'vitest';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { inATaskRoom, type Sketch, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const CONFIG = { type: 'config' as never, id: 'main', mode: 'shared' as const };
const LATER_MS = 60_000;

async function claim(agent: string, task = '') {
  const found = await room.tasks.work.claim({ agent, leaseClass: 'process', ...(task && { task }) });
  if (found.outcome !== 'claimed') throw new Error(`expected a claim, not ${found.outcome}`);
  return found.lease;
}
const beat = (task: string, agent: string) => room.tasks.work.heartbeat({ task, agent });
const held = (task: string) => room.client.hmget(room.keys.taskLock(task), 'lock_id', 'fencing_token', 'acquired_at');

/** What Redis does with the keys of leases that are over. */
async function keysEnd(): Promise<void> {
  for (const lock of await room.client.zrange(room.keys.lockRegistry(), '0', '-1')) {
    if (!lock.startsWith('ade:lock:agent:')) await room.client.del(lock);
  }
}

const ENDS = {
  'is over': async () => {},
  'is over and its keys are gone': keysEnd,
  'was swept': async () => {
    await keysEnd();
    await sweepOnce(room.locks);
  },
};

describe.each(Object.entries(ENDS))('a lease that %s', (_, end) => {
  test('stands again with the next word of its holder, under the tokens it had', async () => {
    await room.add({ task_id: 'A', files_to_modify: ['a.ts'] });
    const lease = await claim('ann');
    const before = await held('A');
    room.shift(LATER_MS);
    await end();
    expect(await beat('A', 'ann')).toMatchObject({ outcome: 'noted' });
    expect(await held('A')).toEqual(before);
    expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
    await sweepOnce(room.locks);
    expect(await beat('A', 'ann')).toMatchObject({ outcome: 'noted' });
    const named = { task: 'A', agent: 'ann', lockId: lease.lock_id, token: lease.fencing_token };
    expect(await room.tasks.work.complete(named)).toMatchObject({ outcome: 'completed' });
  });

  test('that several share stands again for each of them', async () => {
    const readers = ['A', 'B', 'C'];
    await room.add(...readers.map((task_id): Sketch => ({ task_id, resources: [CONFIG] })));
    for (const task of readers) await claim(`agent-${task}`, task);
    room.shift(LATER_MS);
    await end();
    for (const task of readers) {
      expect(await beat(task, `agent-${task}`)).toMatchObject({ outcome: 'noted' });
      await sweepOnce(room.locks);
    }
    expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
    for (const task of readers) await room.tasks.work.complete({ task, agent: `agent-${task}` });
    expect(await room.client.zcard(room.keys.lockRegistry())).toBe(0);
  });

  test('stays over when somebody else has had what it worked on', async () => {
    await room.add({ task_id: 'A', files_to_modify: ['a.ts'] });
    await claim('ann');
    room.shift(LATER_MS);
    await end();
    const lock = parseLock('resource:file:a.ts');
    await room.locks.reap(lock);
    const ben = { locks: [lock], agent: 'ben', lockId: 'l1' };
    expect(await room.locks.acquire({ ...ben, locks: [{ lock }] })).toMatchObject({ outcome: 'granted' });
    await room.locks.release(ben);
    expect(await beat('A', 'ann')).toMatchObject({ outcome: 'late' });
    await room.tasks.overdue.dueOnce();
    expect(await room.status('A')).toBe('pending');
  });

  test('stays over once the task is taken back, also for the next attempt of the same agent', async () => {
    await room.add('A');
    const first = await claim('ann');
    room.shift(LATER_MS);
    await end();
    expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: ['A'] });
    expect(await beat('A', 'ann')).toMatchObject({ outcome: 'late' });
    await claim('ann');
    const old = { task: 'A', agent: 'ann', lockId: first.lock_id };
    expect(await room.tasks.work.heartbeat(old)).toMatchObject({ outcome: 'late' });
    expect(await beat('A', 'ann')).toMatchObject({ outcome: 'noted' });
  });

  test('of a child stands again with that of its parent', async () => {
    await room.add({ task_id: 'P', files_to_modify: ['src/'] });
    await claim('ann');
    await room.add({ task_id: 'C', parent_task_id: 'P', files_to_modify: ['src/a.ts', 'docs/b.md'] });
    await claim('ann', 'C');
    room.shift(LATER_MS);
    await end();
    expect(await beat('C', 'ann')).toMatchObject({ outcome: 'noted' });
    expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
    expect((await held('P'))[0]).not.toBeNull();
    expect(await room.locks.inspect(parseLock('resource:file:docs/b.md'))).toMatchObject({
      holders: [{ agent: 'ann' }],
    });
  });
});

test('it is told of, and the lock’s end and its new beginning are told once each', async () => {
  await room.add('A');
  await claim('ann');
  room.shift(LATER_MS);
  await ENDS['was swept']();
  await beat('A', 'ann');
  await beat('A', 'ann');
  const told = (await room.events.latest({ streams: ['lock'] })).events.map(({ event }) => event);
  expect(told.filter((event) => event === 'lock:acquired')).toHaveLength(2);
  expect(told.filter((event) => event === 'lock:expired').length).toBeLessThanOrEqual(2);
  const work = (await room.events.latest({ streams: ['work'] })).events.map(({ event }) => event);
  expect(work.filter((event) => event === 'lease_revived')).toHaveLength(1);
});
