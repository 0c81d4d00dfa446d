import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import type { Candidate } from '../../../src/coordinator/agents/matcher.ts';
import { Roster } from '../../../src/coordinator/agents/roster.ts';
import { TaskBoard } from '../../../src/coordinator/tasks/board.ts';
import { explainTasks } from '../../../src/coordinator/tasks/explain-tasks.ts';
import { Staffing } from '../../../src/coordinator/tasks/staffing.ts';
import { aTaskRoom, expectSound, type TaskRoom } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
afterEach(() => expectSound(room));

let board: TaskBoard;
let staffing: Staffing;
let roster: Roster;
let waiting: Candidate[];
beforeEach(async () => {
  await room.reset();
  waiting = [];
  const { connection, keys, locks, tasks, events } = room;
  const clock = systemClock;
  roster = new Roster({ connection, keys, places: locks, clock });
  const { views } = tasks;
  staffing = new Staffing({ roster, views, waiting: () => waiting, clock });
  board = new TaskBoard({
    views,
    pauses: room.tasks.pauses,
    roster,
    staffing,
    events,
    tail: { listen: () => () => {} },
    clock,
  });
});
const why = async (ref: string) => (await explainTasks(room.tasks, staffing)(ref, 'ann'))!;

describe('the board', () => {
  test('shows how far the work is, who does what since when, and what went wrong', async () => {
    await room.add('A', 'B', { task_id: 'C', depends_on: ['A'] });
    await room.tasks.work.claim({ agent: 'ann', type: 'codex' });
    await room.tasks.work.report({ task: 'A', agent: 'ann' }, { note: 'half', percent: 50 });
    await room.tasks.work.claim({ agent: 'bob' });
    await room.tasks.work.fail({ task: 'B', agent: 'bob' }, { error: 'no table' });
    await room.tasks.pauses.pause('shadcn-design-engineer', { reason: 'tired', ends: 0 });
    const { working_since, ...ann } = (await board.look()).agents[0]!;
    expect(await board.look()).toMatchObject({
      counts: { total: 3, in_progress: 1, blocked: 2, pending: 0, completed: 0, failed: 0 },
      agents: [{ agent_id: 'ann' }, { agent_id: 'bob', status: 'idle', tasks: [] }],
      errors: ['B: no table'],
      pauses: [{ what: 'shadcn-design-engineer', reason: 'tired' }],
      unserved: [],
    });
    expect(ann).toMatchObject({ agent_type: 'codex', status: 'working', tasks: ['A'], note: 'half', percent: 50 });
    expect(systemClock.now() - Date.parse(working_since!)).toBeLessThan(60_000);
    expect(await roster.show('bob')).not.toHaveProperty('working_since');
  });

  test('forecasts from what was completed before it began to listen, and since', async () => {
    await room.add(...Array.from({ length: 8 }, (_, at) => `T${at}`));
    const done = async () => {
      const claimed = await room.tasks.work.claim({ agent: 'ann' });
      if (claimed.outcome === 'claimed') await room.tasks.work.complete({ task: claimed.task.task_id, agent: 'ann' });
      room.shift(30_000);
    };
    for (let count = 0; count < 3; count++) await done();
    expect(await board.look()).not.toHaveProperty('forecast.rate_per_hour');
    for (let count = 0; count < 3; count++) await done();
    for (const event of (await room.events.latest({ streams: ['work'] })).events.slice(-9)) board.hear(event);
    const { forecast } = await board.look();
    expect(forecast!.rate_per_hour).toBeGreaterThan(100);
    expect(forecast!.p85_seconds).toBeGreaterThan(20);
  });
});

describe('a ready task that no live agent can take', () => {
  test('is an alarm, on the board and when asked why', async () => {
    await room.add({ task_id: 'DBA', agent_type: 'dba' }, { task_id: 'RUST', requires: ['rust', 'simd'] }, 'ANY');
    expect((await board.look()).unserved.map(({ task_id }) => task_id)).toEqual(['DBA', 'RUST', 'ANY']);
    expect((await why('ANY')).says).toBe(
      'ANY is ready, but no live agent can take it: it wants any agent: none is there.',
    );
    await roster.register({ agent: 'ann', type: 'codex', capabilities: ['rust'] });
    await roster.register({ agent: 'bob', type: 'codex' });
    expect((await board.look()).unserved).toEqual([
      { task_id: 'DBA', wants: 'an agent of type dba' },
      { task_id: 'RUST', wants: 'an agent that can simd' },
    ]);
    expect(await why('RUST')).toMatchObject({
      holds: [
        { kind: 'capacity', because: 'RUST is ready, but no live agent can take it: it wants an agent that can simd.' },
      ],
    });
    expect((await why('ANY')).holds).toEqual([]);
  });

  test('waits no more as soon as one stands at the desk, registered or not', async () => {
    await room.add({ task_id: 'DBA', agent_type: 'dba' });
    waiting = [{ agent_type: 'DBA', capabilities: [] }];
    expect((await board.look()).unserved).toEqual([]);
  });

  test.each([
    ['drains', async () => void (await roster.setStatus('ann', 'draining'))],
    ['has finished', async () => void (await room.client.hset(room.keys.agent('ann'), 'status', 'finished'))],
    ['was last heard of hours ago', async () => void (await room.client.expire(room.keys.agent('ann'), 80_000))],
  ])('is not saved by an agent that %s', async (_, leave) => {
    await room.add('A');
    await roster.register({ agent: 'ann' });
    expect((await board.look()).unserved).toEqual([]);
    await leave();
    expect((await board.look()).unserved).toEqual([{ task_id: 'A', wants: 'any agent: none is there' }]);
  });
});

test('a task whose type is paused says who paused it and why', async () => {
  await room.add('A');
  await room.tasks.pauses.pause('all', { by: 'ops', reason: 'deploy', at: '2026-01-01T00:00:00Z', ends: 0 });
  expect(await why('A')).toMatchObject({
    says: 'A could be worked on, but all work is paused by ops: deploy.',
    holds: [{ kind: 'paused', holder: 'ops', actions: [{ command: 'reeve resume all' }] }],
  });
});
