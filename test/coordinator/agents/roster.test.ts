import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Roster } from '../../../src/coordinator/agents/roster.ts';
import { aTaskRoom, type TaskRoom } from '../tasks/room.ts';

let room: TaskRoom;
let roster: Roster;
beforeAll(async () => {
  room = await aTaskRoom();
  const { connection, keys, locks } = room;
  roster = new Roster({
    connection,
    keys,
    places: locks,
    clock: systemClock,
    current: () => room.tasks.store.current(),
  });
});
beforeEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

test('whoever is seen on the roster can be drained, also while it is still registering', async () => {
  for (let round = 0; round < 20; round++) {
    const agent = `new-${round}`;
    const registering = roster.register({ agent, maxTasks: 2 });
    let seen: unknown;
    while (!seen) seen = await roster.show(agent);
    expect(await roster.setStatus(agent, 'draining')).toMatchObject({ takes_work: 'draining', max_tasks: 2 });
    await registering;
    expect(await roster.show(agent)).toMatchObject({ takes_work: 'draining' });
  }
});

test('a plain client that wrote its card itself can be drained, too, and then gets nothing', async () => {
  await room.add('A');
  await room.plain.hset(room.keys.agent('raw'), 'agent_type', 'codex', 'status', 'idle');
  expect(await roster.setStatus('raw', 'draining')).toMatchObject({ takes_work: 'draining', agent_type: 'codex' });
  expect(await room.tasks.work.claim({ agent: 'raw' })).toEqual({ outcome: 'refused', status: 'draining' });
});

test('one that has finished says so on its card, until it is there again; with work in hand it has not', async () => {
  const status = async () => (await roster.show('ann'))?.status;
  await roster.register({ agent: 'ann' });
  await room.add('A');
  await room.tasks.work.claim({ agent: 'ann' });
  await roster.heartbeat('ann', { isFinished: true });
  expect(await status()).toBe('working');
  await room.tasks.work.complete({ task: 'A', agent: 'ann' });
  await roster.heartbeat('ann', { isFinished: true });
  expect(await room.client.hget(room.keys.agent('ann'), 'status')).toBe('finished');
  await roster.heartbeat('ann');
  expect(await status()).toBe('idle');
  await roster.heartbeat('ann', { isFinished: true });
  await roster.register({ agent: 'ann' });
  expect(await status()).toBe('idle');
  expect(await roster.heartbeat('nobody', { isFinished: true })).toBe(false);
});

test('one that nobody has heard of cannot', async () => {
  expect(await roster.setStatus('nobody-yet', 'draining')).toBeUndefined();
  expect(await roster.show('nobody-yet')).toBeUndefined();
});
