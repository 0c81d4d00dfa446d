import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { canMove } from '../../../src/coordinator/tasks/transitions.ts';
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
afterEach(async () => {
  await expectSound(room);
  await expectLawfulMoves();
});

/** Each change of state follows on the last one of its task, and is one that the table of transitions has. */
async function expectLawfulMoves(): Promise<void> {
  const last = new Map<string, string>();
  const { events } = await room.events.since({}, { streams: ['task'], limit: 1_000 });
  for (const { payload } of events) {
    const { task_id, from, to } = payload as Record<'task_id' | 'from' | 'to', never>;
    expect([task_id, from]).toEqual([task_id, last.get(task_id) ?? from]);
    expect([from, to, canMove(from, to)]).toEqual([from, to, true]);
    last.set(task_id, to);
  }
}

const ENDS = ['completed', 'failed', 'cancelled'] as const;
const WORDS = ['completed', 'failed', 'cancelled', 'running', 'open'] as const;

describe('a person’s word about a task that has ended', () => {
  test.each(ENDS.flatMap((end) => WORDS.map((word) => [end, word] as const)))('%s, then %s', async (end, word) => {
    await room.add('A', { task_id: 'B', depends_on: ['A'] });
    await room.tasks.judge('A', { to: end }, 'a person', 'because');
    await room.tasks.judge('A', { to: word }, 'a person', 'after all');
    const station = { completed: 'done', failed: 'failed', cancelled: 'cancelled', running: 'working', open: 'ready' };
    // What has ended is not called off any more.
    const expected = word === 'cancelled' || (end === 'cancelled' && word === 'failed') ? station[end] : station[word];
    expect((await room.tasks.standings(['A' as never])).get('A' as never)?.station).toBe(expected);
    expect(await room.status('B')).toBe(expected === 'done' ? 'pending' : 'blocked');
  });
});

test.each(['running', 'failed', 'open'] as const)(
  'a word by one who saw it open (%s) does not undo a completion that came before it',
  async (to) => {
    await room.add('A');
    await room.tasks.work.claim({ agent: 'ann' });
    await room.tasks.work.complete({ task: 'A', agent: 'ann' });
    await room.tasks.judge('A', { to, unlessEnded: true }, 'a plain client');
    expect((await room.tasks.views.rows(await room.tasks.store.ids()))[0]).toMatchObject({
      station: 'done',
      agent_id: 'ann',
    });
  },
);

test('a task that runs when its dependency is opened again goes on, and waits only if it comes back', async () => {
  await room.add('A', { task_id: 'B', depends_on: ['A'] });
  await room.tasks.judge('A', { to: 'completed' }, 'a person');
  await room.tasks.work.claim({ agent: 'ann' });
  await room.tasks.reopen('A', 'not good enough', 'a person');
  expect(await room.status('B')).toBe('assigned');
  await room.tasks.work.drop({ task: 'B', agent: 'ann' }, 'back');
  expect(await room.status('B')).toBe('blocked');
  await room.tasks.judge('A', { to: 'completed' }, 'a person');
  expect(await room.status('B')).toBe('pending');
});
