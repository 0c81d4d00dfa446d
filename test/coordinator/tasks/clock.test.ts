import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
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

const HOUR_MS = 3_600_000;

test('a thousand leases that end at once come back a batch at a time, each once', { timeout: 120_000 }, async () => {
  const agents = Array.from({ length: 1_000 }, (_, at) => `agent-${at}`);
  await room.add(...agents.map((_, at) => `T-${at}`));
  await Promise.all(agents.map((agent) => room.tasks.work.claim({ agent, leaseClass: 'process' })));
  room.shift(31_000);
  const lost: string[] = [];
  for (let batch = 0; batch < 5; batch++) {
    const found = await room.tasks.dueOnce();
    expect(found.lost).toHaveLength(200);
    lost.push(...found.lost);
  }
  expect(new Set(lost).size).toBe(1_000);
  expect(await room.tasks.dueOnce()).toMatchObject({ lost: [] });
  expect(await room.tasks.views.progress()).toMatchObject({ pending: 1_000, in_progress: 0 });
});

test('a clock that goes back an hour takes nobody’s lease, and tokens still rise', async () => {
  await room.add('A');
  const first = await room.tasks.work.claim({ agent: 'ann', leaseClass: 'process' });
  room.shift(-HOUR_MS);
  expect(await room.tasks.dueOnce()).toMatchObject({ lost: [] });
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
  expect(await room.tasks.dueOnce()).toMatchObject({ lost: ['A'] });
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'late' });
  await room.tasks.work.claim({ agent: 'ben' });
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ben' })).toMatchObject({ released: ['B'] });
});
