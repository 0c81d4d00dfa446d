import { describe, expect, test } from 'vitest';
import type { ClaimOutcome } from '../../../src/coordinator/tasks/lease.ts';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const claimed = (outcome: ClaimOutcome) => {
  if (outcome.outcome !== 'claimed') throw new Error(`expected a claim, got ${JSON.stringify(outcome)}`);
  return outcome;
};
const next = async (agent: string, more: object = {}) => claimed(await room.tasks.work.claim({ agent, ...more }));

describe('a claim', () => {
  test('hands out the most urgent task with its lock, a place and every row the contract names', async () => {
    await room.add({ task_id: 'B', priority: 2 }, { task_id: 'A', priority: 1 });
    expect(await room.queue()).toEqual(['A', 'B']);
    const { task, lease } = await next('ann');
    expect(task.task_id).toBe('A');
    expect(await room.queue()).toEqual(['B']);
    expect(await room.status('A')).toBe('assigned');
    const lock = await room.client.hgetall(room.keys.taskLock('A'));
    expect(lock).toMatchObject({ holder_agent_id: 'ann', lock_id: lease.lock_id, fencing_token: lease.fencing_token });
    expect(await room.client.get(room.keys.taskState('A'))).toBe('APPLYING');
    expect(await room.client.hgetall(room.keys.agent('ann'))).toMatchObject({ current_task: 'A', status: 'working' });
    expect(await room.client.ttl(room.keys.agent('ann'))).toBeGreaterThan(86_000);
    expect(await room.client.hget(room.keys.agentCapacity('ann'), 'active_tasks')).toBe('1');
  });

  test('asked again with its own id, or by an agent whose hands are full, is the same claim', async () => {
    await room.add('A', 'B');
    const first = await next('ann', { lockId: 'claim-1' });
    expect(await next('ann', { lockId: 'claim-1' })).toMatchObject({ again: true, lease: first.lease });
    expect(await next('ann')).toMatchObject({ again: true, task: { task_id: 'A' }, lease: { lock_id: 'claim-1' } });
  });

  test('has one winner among fifty', async () => {
    await room.add('A');
    const all = await Promise.all(Array.from({ length: 50 }, (_, n) => room.tasks.work.claim({ agent: `a${n}` })));
    expect(all.filter(({ outcome }) => outcome === 'claimed')).toHaveLength(1);
    expect(all.filter(({ outcome }) => outcome === 'none')).toHaveLength(49);
  });

  test('passes over what would collide with running work, which comes back when that ends', async () => {
    await room.add(
      { task_id: 'A', files_to_modify: ['src/app/'] },
      { task_id: 'B', files_to_modify: ['src/app/page.tsx'] },
      { task_id: 'C', files_to_modify: ['src/lib.ts'] },
    );
    const first = await next('ann');
    expect((await next('ben')).task.task_id).toBe('C');
    expect(await room.queue()).toEqual([]);
    expect(await room.client.smembers(room.keys.parkedTasks('A'))).toEqual(['B']);
    await room.tasks.work.complete({ task: 'A', agent: 'ann', lockId: first.lease.lock_id });
    expect(await room.queue()).toEqual(['B']);
    expect((await next('ann')).task.task_id).toBe('B');
  });

  test('lets tasks that only read the same thing run together', async () => {
    const db = { type: 'database' as never, id: 'main', mode: 'shared' as const };
    await room.add(
      { task_id: 'A', resources: [db] },
      { task_id: 'B', resources: [db] },
      { task_id: 'C', resources: [{ ...db, mode: 'exclusive' }] },
    );
    await next('ann');
    expect((await next('ben')).task.task_id).toBe('B');
    expect(await room.tasks.work.claim({ agent: 'cat' })).toMatchObject({ outcome: 'none' });
    await room.tasks.work.complete({ task: 'A', agent: 'ann' });
    await room.tasks.work.complete({ task: 'B', agent: 'ben' });
    expect((await next('cat')).task.task_id).toBe('C');
  });

  test('respects a lock that somebody took outside the queue', async () => {
    await room.add({ task_id: 'A', files_to_modify: ['x.ts'] });
    const lock = { kind: 'resource', type: 'file', id: 'x.ts' } as never;
    await room.locks.acquire({ locks: [{ lock }], agent: 'someone', lockId: 'l1' });
    expect(await room.tasks.work.claim({ agent: 'ann' })).toMatchObject({ outcome: 'none' });
    await room.locks.release({ locks: [lock], agent: 'someone', lockId: 'l1' });
    room.shift(3_000);
    await room.tasks.overdue.dueOnce();
    expect((await next('ann')).task.task_id).toBe('A');
  });

  test('gives only what the type and the capabilities of the agent fit', async () => {
    await room.add({ task_id: 'UI', category: 'UI' }, { task_id: 'DB', requires: ['Postgres'] }, { task_id: 'ANY' });
    const designer = { type: 'shadcn-design-engineer' };
    const engineer = { type: 'fullstack-nodejs-nextjs-engineer' };
    expect((await next('eve', engineer)).task.task_id).toBe('ANY');
    expect(await room.tasks.work.claim({ agent: 'fay', ...engineer })).toMatchObject({ outcome: 'none' });
    expect((await next('gus', { ...engineer, capabilities: ['postgres'] })).task.task_id).toBe('DB');
    expect((await next('hal', designer)).task.task_id).toBe('UI');
  });
});

test('giving back, asked again because the answer was lost, is the same giving back; by anyone else it is refused', async () => {
  await room.add('A');
  const { lease } = await next('ann');
  const ann = { task: 'A', agent: 'ann', lockId: lease.lock_id };
  expect(await room.tasks.work.drop(ann, 'back')).toEqual({ outcome: 'dropped', position: 1 });
  expect(await room.tasks.work.drop(ann, 'back')).toEqual({ outcome: 'dropped', position: 1 });
  expect(await room.tasks.work.drop({ task: 'A', agent: 'ben' }, 'back')).toMatchObject({ outcome: 'late' });
  expect((await room.tasks.outcomes(10)).length).toBe(0);
  const { lease: second } = await next('ben');
  expect(await room.tasks.work.drop(ann, 'back')).toMatchObject({ outcome: 'late', holder: 'ben' });
  await room.tasks.work.complete({ task: 'A', agent: 'ben', lockId: second.lock_id });
  expect(await room.tasks.work.drop({ task: 'A', agent: 'ben' }, 'back')).toMatchObject({ status: 'completed' });
});

describe('a completion', () => {
  test('releases what waited for it, and writes the seven fields of the result', async () => {
    await room.add('A', { task_id: 'B', depends_on: ['A'] }, { task_id: 'C', depends_on: ['A', 'B'] });
    expect(await room.status('B')).toBe('blocked');
    const { lease } = await next('ann');
    const done = await room.tasks.work.complete(
      { task: 'A', agent: 'ann', lockId: lease.lock_id, token: lease.fencing_token },
      { files_modified: ['a.ts'], notes: 'ok' },
    );
    expect(done).toMatchObject({ outcome: 'completed', released: ['B'] });
    expect(JSON.parse((await room.client.get(room.keys.taskResult('A')))!)).toEqual({
      task_id: 'A',
      agent_id: 'ann',
      started_at: lease.acquired_at,
      completed_at: done.outcome === 'completed' && done.at,
      files_modified: ['a.ts'],
      notes: 'ok',
      errors: [],
    });
    expect(await room.client.exists(room.keys.taskLock('A'), room.keys.agentCapacityLeases('ann'))).toBe(0);
    expect(await room.client.get(room.keys.taskState('A'))).toBe('COMPLETED');
  });

  test('is counted once, and one that comes too late is kept beside', async () => {
    await room.add('A');
    const { lease } = await next('ann');
    const ann = { task: 'A', agent: 'ann', lockId: lease.lock_id };
    await room.tasks.work.complete(ann);
    expect(await room.tasks.work.complete(ann)).toMatchObject({ outcome: 'already' });
    const late = await room.tasks.work.complete({ task: 'A', agent: 'zoe' }, { notes: 'mine, too' });
    expect(late).toEqual({ outcome: 'late', status: 'completed', holder: 'ann' });
    expect((await room.tasks.views.detail('A'))?.late_results).toMatchObject([{ agent_id: 'zoe', notes: 'mine, too' }]);
    expect((await room.tasks.views.progress()).completed).toBe(1);
  });

  test('that comes too late moves nothing: the file is not told that its author is the agent', async () => {
    await room.add({ task_id: 'A', origin: 'prd' });
    await next('ann');
    await room.tasks.work.complete({ task: 'A', agent: 'ann' });
    await room.tasks.work.complete({ task: 'A', agent: 'zoe' });
    const outcomes = await room.tasks.outcomes(10);
    expect(outcomes.map(({ event, agent_id, station }) => [event, agent_id, station])).toEqual([
      ['task_assigned', 'ann', 'working'],
      ['task_completed', 'ann', 'done'],
      ['late_result', 'zoe', undefined],
    ]);
  });

  test('after a failure, and a failure after it, move nothing: the first word of a lease ends it', async () => {
    await room.add('A', 'B');
    const { lease } = await next('ann');
    const ann = { task: 'A', agent: 'ann', lockId: lease.lock_id };
    expect(await room.tasks.work.fail(ann, { error: 'boom' })).toMatchObject({ outcome: 'retry' });
    expect(await room.tasks.work.complete(ann, { notes: 'it works after all' })).toMatchObject({ outcome: 'late' });
    expect((await room.tasks.views.detail('A'))?.late_results).toMatchObject([{ notes: 'it works after all' }]);
    expect(await room.status('A')).toBe('blocked');
    const second = await next('ann');
    const again = { task: 'B', agent: 'ann', lockId: second.lease.lock_id };
    expect(await room.tasks.work.complete(again)).toMatchObject({ outcome: 'completed' });
    expect(await room.tasks.work.fail(again, { error: 'boom' })).toMatchObject({ outcome: 'already' });
    expect(await room.status('B')).toBe('completed');
  });

  test('by another name, or under a token that is not the one of the lease, is kept beside', async () => {
    await room.add('A');
    const { lease } = await next('ann');
    const { lock_id: lockId, fencing_token: token } = lease;
    expect(await room.tasks.work.complete({ task: 'A', agent: 'ben', lockId, token })).toMatchObject({
      outcome: 'late',
    });
    expect(await room.tasks.work.complete({ task: 'A', agent: 'ann', lockId, token: '7' })).toMatchObject({
      outcome: 'late',
    });
    expect(await room.tasks.work.complete({ task: 'A', agent: 'ann', lockId, token })).toMatchObject({
      outcome: 'completed',
    });
  });

  test('of a task that nobody claimed is not believed', async () => {
    await room.add('A');
    expect(await room.tasks.work.complete({ task: 'A', agent: 'ann' })).toMatchObject({
      outcome: 'late',
      status: 'pending',
    });
    expect(await room.tasks.work.complete({ task: 'X', agent: 'ann' })).toEqual({ outcome: 'unknown' });
  });
});

describe('a lease that ends unsaid', () => {
  test('puts the task back with the reason, and its old holder is refused', async () => {
    await room.add('A');
    const { lease } = await next('ann', { leaseClass: 'process' });
    room.shift(31_000);
    expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: ['A'] });
    expect(await room.status('A')).toBe('pending');
    const again = await next('ben');
    expect(again.lease.attempt).toBe(2);
    expect(Number(again.lease.fencing_token)).toBeGreaterThan(Number(lease.fencing_token));
    const ann = { task: 'A', agent: 'ann', lockId: lease.lock_id };
    expect(await room.tasks.work.report(ann)).toMatchObject({ outcome: 'late', holder: 'ben' });
    expect(await room.tasks.work.complete(ann)).toMatchObject({ outcome: 'late', holder: 'ben' });
    expect(await room.status('A')).toBe('assigned');
  });

  test('does not end while it is renewed', async () => {
    await room.add({ task_id: 'A', files_to_modify: ['a.ts'] });
    const { lease } = await next('ann', { leaseClass: 'process' });
    const ann = { task: 'A', agent: 'ann', lockId: lease.lock_id };
    for (let beat = 0; beat < 4; beat++) {
      room.shift(20_000);
      expect(await room.tasks.work.report(ann, { note: 'working', percent: 10 * beat })).toMatchObject({
        outcome: 'noted',
      });
      expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
    }
    expect(await room.status('A')).toBe('in_progress');
  });

  test('counts as a time-out when the task takes longer than it may', async () => {
    await room.add({ task_id: 'A', timeout_seconds: 60 });
    const { lease } = await next('ann');
    room.shift(61_000);
    expect(await room.tasks.overdue.timeOutOnce()).toEqual(['A']);
    expect(await room.client.hget(room.keys.taskExecution('A'), 'error')).toContain('60 s');
    expect(await room.tasks.work.report({ task: 'A', agent: 'ann', lockId: lease.lock_id })).toMatchObject({
      outcome: 'late',
    });
  });
});

describe('a failure', () => {
  test('is tried again after a pause that doubles, then given up', async () => {
    await room.add(
      'A',
      { task_id: 'B', depends_on: ['A'] },
      { task_id: 'C', depends_on: ['A'], if_dependency_fails: 'skip' },
    );
    await room.add({ task_id: 'D', depends_on: ['A'], if_dependency_fails: 'fail' });
    for (const inMs of [1_000, 2_000]) {
      await next('ann');
      expect(await room.tasks.work.fail({ task: 'A', agent: 'ann' }, { error: 'boom' })).toMatchObject({
        outcome: 'retry',
        inMs,
      });
      expect(await room.status('A')).toBe('blocked');
      room.shift(inMs + 10);
      await room.tasks.overdue.dueOnce();
    }
    await next('ann');
    expect(await room.tasks.work.fail({ task: 'A', agent: 'ann' }, { error: 'boom' })).toEqual({
      outcome: 'failed',
      attempts: 3,
    });
    expect(await Promise.all(['A', 'B', 'C', 'D'].map((id) => room.status(id)))).toEqual([
      'failed',
      'blocked',
      'pending',
      'failed',
    ]);
    expect(await room.client.lrange(room.keys.errorList(), 0, -1)).toEqual(['A: boom', 'A: boom', 'A: boom']);
    await room.tasks.reopen('A', 'mended', 'pat');
    expect(await Promise.all(['A', 'B'].map((id) => room.status(id)))).toEqual(['pending', 'blocked']);
  });

  test('of quota pauses its type and spends no attempt', async () => {
    await room.add('A', 'B');
    await next('ann', { type: 'codex' });
    const until = Math.floor(Date.now() / 1000) + 600;
    const quota = { class: 'quota' as const, error: 'limit reached', pauseType: 'codex', pauseUntil: until };
    expect(await room.tasks.work.fail({ task: 'A', agent: 'ann' }, quota)).toMatchObject({
      outcome: 'retry',
      attempts: 0,
    });
    expect(await room.tasks.work.claim({ agent: 'ben', type: 'codex' })).toMatchObject({ outcome: 'paused' });
    expect((await next('cat', { type: 'claude' })).task.task_id).toBe('A');
    room.shift(601_000);
    expect((await next('ben', { type: 'codex' })).task.task_id).toBe('B');
  });
});

describe('people', () => {
  test('pause everything for plain clients, too, and let it go on', async () => {
    await room.add('A', 'B');
    await room.tasks.pauses.pause('all', { reason: 'deploy' });
    expect(await room.client.rpop(room.keys.taskQueue())).toBeNull();
    expect(await room.tasks.work.claim({ agent: 'ann' })).toMatchObject({
      outcome: 'paused',
      pause: { reason: 'deploy' },
    });
    await room.tasks.pauses.resume('all');
    expect(await room.queue()).toEqual(['A', 'B']);
  });

  test('call a running task off; its agent learns so with its next word', async () => {
    await room.add('A', { task_id: 'B', depends_on: ['A'] });
    await next('ann');
    expect(await room.tasks.cancelOne('A', 'not wanted', 'pat')).toBe('cancelled');
    expect(await room.tasks.work.report({ task: 'A', agent: 'ann' })).toMatchObject({
      outcome: 'late',
      status: 'failed',
    });
    expect(await room.tasks.views.standings(['A' as never])).toEqual(
      new Map([['A', { station: 'cancelled', status: 'failed', agent: undefined }]]),
    );
  });

  test('have cycles and unknown dependencies told, and only those to blame held', async () => {
    await room.add(
      { task_id: 'A', depends_on: ['B'] },
      { task_id: 'B', depends_on: ['A'] },
      { task_id: 'C', depends_on: ['GHOST'] },
      'D',
    );
    expect(await room.queue()).toEqual(['D']);
    expect((await room.tasks.views.detail('A'))?.quarantine).toContain('A → B → A');
    expect((await room.tasks.views.detail('C'))?.quarantine).toContain('GHOST');
    await room.add('GHOST');
    expect((await room.tasks.views.detail('C'))?.quarantine).toBeUndefined();
    expect(await room.status('C')).toBe('blocked');
    await room.tasks.amend([{ task_id: 'A' as never, set: { depends_on: [] } }]);
    expect(await room.queue()).toEqual(['A', 'D', 'GHOST']);
  });

  test('make a blocker urgent by what waits for it', async () => {
    await room.add({ task_id: 'LOW', priority: 9 }, { task_id: 'MID', priority: 5 });
    expect(await room.queue()).toEqual(['MID', 'LOW']);
    await room.add({ task_id: 'TOP', priority: 1, depends_on: ['LOW'] });
    expect(await room.queue()).toEqual(['LOW', 'MID']);
  });
});
