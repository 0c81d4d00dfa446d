import { describe, expect, test } from 'vitest';
import { Overdue } from '../../../src/coordinator/tasks/overdue.ts';
import { silentLog } from '../../../src/log.ts';
import { fakeClock } from '../../support/clock.ts';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const HOUR_MS = 3_600_000;

test('a thousand leases that end at once come back a batch at a time, each once', { timeout: 120_000 }, async () => {
  const agents = Array.from({ length: 1_000 }, (_, at) => `agent-${at}`);
  await room.add(...agents.map((_, at) => `T-${at}`));
  await Promise.all(agents.map((agent) => room.tasks.work.claim({ agent, leaseClass: 'process' })));
  room.shift(31_000);
  const lost: string[] = [];
  for (let batch = 0; batch < 5; batch++) {
    const found = await room.tasks.overdue.dueOnce();
    expect(found.lost).toHaveLength(200);
    lost.push(...found.lost);
  }
  expect(new Set(lost).size).toBe(1_000);
  expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
  expect(await room.tasks.views.progress()).toMatchObject({ pending: 1_000, in_progress: 0 });
});

test('a clock that goes back an hour takes nobody’s lease, and tokens still rise', async () => {
  await room.add('A');
  const first = await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
  room.shift(-HOUR_MS);
  expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: [] });
  expect(await room.tasks.work.heartbeat({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'noted' });
  await room.tasks.work.drop({ task: 'A', agent: 'ann' }, 'back');
  const second = await room.tasks.work.claim({ agent: 'ben', leaseClass: 'process' });
  if (first.outcome !== 'claimed' || second.outcome !== 'claimed') throw new Error('expected two claims');
  expect(BigInt(second.lease.fencing_token)).toBeGreaterThan(BigInt(first.lease.fencing_token));
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ben' })).toMatchObject({ outcome: 'completed' });
});

test('a clock that leaps an hour ends leases, costs an attempt each, and loses nothing', async () => {
  await room.add('A', { task_id: 'B', depends_on: ['A'] });
  await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
  room.shift(HOUR_MS);
  expect(await room.tasks.overdue.dueOnce()).toMatchObject({ lost: ['A'] });
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'late' });
  await room.tasks.work.claim({ agent: 'ben' });
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ben' })).toMatchObject({ released: ['B'] });
});

describe('a daemon that was cut off from Redis for longer than leases last', () => {
  const clock = fakeClock();
  const aDaemon = () => {
    const { store, work, pauses } = room.tasks;
    return new Overdue({ store, work, pauses, clock, log: silentLog });
  };

  test('takes nobody’s task before they had time to speak again', async () => {
    await room.add('A', 'B');
    const daemon = aDaemon();
    await daemon.dueOnce();
    await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
    await room.tasks.work.claim({ agent: 'ben', leaseClass: 'process' });
    await clock.advance(60_000);
    room.shift(60_000);
    expect(await daemon.dueOnce()).toMatchObject({ lost: [] });
    expect(await room.tasks.work.complete({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
    await clock.advance(10_000);
    expect(await daemon.dueOnce()).toMatchObject({ lost: [] });
    await clock.advance(10_000);
    await daemon.dueOnce();
    await clock.advance(10_000);
    expect(await daemon.dueOnce()).toMatchObject({ lost: ['B'] });
    expect(await room.client.hget(room.keys.taskRecord('B'), 'attempts')).toBe('1');
  });

  test('takes nobody’s task before they had time to speak again, a model more of it than a process', async () => {
    await room.add('A', 'B');
    const daemon = aDaemon();
    await daemon.dueOnce();
    await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
    await room.tasks.work.claim({ agent: 'ben', leaseClass: 'agent' });
    await clock.advance(HOUR_MS);
    room.shift(HOUR_MS);
    const lost: string[][] = [];
    for (let half = 0; half < 10; half++) {
      lost.push([...(await daemon.dueOnce()).lost]);
      await clock.advance(15_000);
    }
    expect(lost).toEqual([[], [], ['A'], [], [], [], [], [], ['B'], []]);
  });

  test('hears of a beat, and the lease goes on', async () => {
    await room.add('A');
    const daemon = aDaemon();
    await daemon.dueOnce();
    await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
    await clock.advance(60_000);
    room.shift(60_000);
    expect(await daemon.dueOnce()).toMatchObject({ lost: [] });
    expect(await room.tasks.work.heartbeat({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'noted' });
    await clock.advance(10_000);
    await daemon.dueOnce();
    await clock.advance(10_000);
    await daemon.dueOnce();
    await clock.advance(10_000);
    expect(await daemon.dueOnce()).toMatchObject({ lost: [] });
  });

  test('is also one that was not there at all', async () => {
    await room.add('A', 'B');
    await aDaemon().dueOnce();
    await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
    room.shift(60_000);
    const next = aDaemon();
    expect(await next.dueOnce()).toMatchObject({ lost: [] });
    await clock.advance(15_000);
    expect(await next.dueOnce()).toMatchObject({ lost: [] });
    await clock.advance(15_000);
    expect(await next.dueOnce()).toMatchObject({ lost: ['A'] });
    await room.tasks.work.claim({ agent: 'ben', leaseClass: 'process' });
    room.shift(31_000);
    expect(await next.dueOnce()).toMatchObject({ lost: ['A'] });
  });

  test('is the only one that waits: another that was there judges as ever', async () => {
    await room.add('A');
    const [cut, there] = [aDaemon(), aDaemon()];
    await cut.dueOnce();
    await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
    for (let second = 0; second < 40; second += 10) {
      await clock.advance(10_000);
      room.shift(10_000);
      await there.dueOnce();
    }
    expect(await room.status('A')).toBe('pending');
    expect(await cut.dueOnce()).toMatchObject({ lost: [] });
  });
});
