import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Roster } from '../../../src/coordinator/agents/roster.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import type { TaskId } from '../../../src/coordinator/tasks/task.ts';
import { silentLog } from '../../../src/log.ts';
import type { Keyspace } from '../../../src/redis/keys.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
let reconciler: Reconciler;
let roster: Roster;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = { ...USUAL, maxAttempts: 2 };
  const { tasks, locks, events, connection, keys } = room;
  const keyspace = { mode: 'standalone' } as const;
  reconciler = new Reconciler({
    tasks,
    locks,
    events,
    keyspace,
    clock: systemClock,
    log: silentLog,
    limits: () => room.limits,
  });
  roster = new Roster({ connection, keys, places: locks, clock: systemClock });
});
afterEach(() => expectSound(room));

const PUBLIC: Readonly<Record<string, (keys: Keyspace) => string>> = {
  'the list': (keys) => keys.taskQueue(),
  'a status': (keys) => keys.taskStatus('A'),
  'a result': (keys) => keys.taskResult('A'),
  'the dependencies of a task': (keys) => keys.taskDependencies('B'),
  'what a task is about': (keys) => keys.taskMeta('A'),
  'the errors': (keys) => keys.errorList(),
  'the progress': (keys) => keys.progress(),
  'an agent': (keys) => keys.agent('ann'),
  'the events': (keys) => keys.coordinationEvents(),
};

/** Whatever the right type is, at least one of these is another. */
const PUT: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
  'a text': (key) => room.plain.set(key, 'surprise'),
  'a list': (key) => room.plain.rpush(key, 'surprise'),
  'a hash': (key) => room.plain.hset(key, 'status', 'completed'),
};

/** Every verb once, from the first claim to the last end. */
async function expectLife(): Promise<void> {
  const { work } = room.tasks;
  const ann = { task: 'A', agent: 'ann' };
  // What was on the list is taken for popped, and comes back.
  await reconciler.once();
  room.shift(31_000);
  await reconciler.once();
  await roster.register({ agent: 'ann', capabilities: ['x'] });
  expect(await work.claim({ agent: 'ann', task: 'A' })).toMatchObject({ outcome: 'claimed' });
  expect(await work.report(ann, { note: 'on it' })).toMatchObject({ outcome: 'noted' });
  expect(await work.drop(ann, 'back')).toMatchObject({ outcome: 'dropped' });
  expect(await work.claim({ agent: 'ann', task: 'A' })).toMatchObject({ outcome: 'claimed' });
  expect(await work.fail(ann, { error: 'boom' })).toMatchObject({ outcome: 'retry' });
  await room.tasks.pauses.pause('all', {});
  await room.tasks.pauses.resume('all');
  room.shift(5_000);
  await reconciler.once();
  await room.tasks.amend([
    { task_id: 'A' as TaskId, set: { title: 'Renamed' } },
    { task_id: 'B' as TaskId, set: { depends_on: ['A', 'C'] } },
  ]);
  expect(await work.claim({ agent: 'ann', task: 'A' })).toMatchObject({ outcome: 'claimed' });
  expect(await work.complete(ann)).toMatchObject({ outcome: 'completed' });
  await room.tasks.judge('C', { to: 'completed' }, 'a person');
  await room.tasks.reopen('A', 'again', 'a person');
  await room.tasks.judge('A', { to: 'completed' }, 'a person');
  expect(await work.claim({ agent: 'ann' })).toMatchObject({ task: { task_id: 'B' } });
  expect(await work.complete({ task: 'B', agent: 'ann' })).toMatchObject({ outcome: 'completed' });
  await reconciler.once();
  await roster.list();
  await room.tasks.views.detail('A');
}

const CASES = Object.keys(PUBLIC).flatMap((name) => Object.keys(PUT).map((what) => [what, name] as const));
test.each(CASES)('%s at the name of %s ends no change half-way', async (what, name) => {
  await room.add('A', { task_id: 'B', depends_on: ['A'] }, 'C');
  const key = PUBLIC[name]!(room.keys);
  await room.plain.del(key);
  await PUT[what]!(key);
  await expectLife();
  expect(await room.tasks.views.progress()).toMatchObject({ total: 3, completed: 3 });
});

test('a list that somebody cleared is filled again, and nobody is taken to have popped a thousand tasks', async () => {
  await room.add(...Array.from({ length: 100 }, (_, at) => `T-${at}`));
  const before = await room.queue();
  await room.plain.del(room.keys.taskQueue());
  expect(await reconciler.once()).toMatchObject({ taken: [] });
  expect(await room.queue()).toEqual(before);
});

test('whoever pops a task and dies before a word costs it no attempt, however often', async () => {
  await room.add('A');
  for (let time = 0; time < 5; time++) {
    expect(await room.plain.rpop(room.keys.taskQueue())).toBe('A');
    expect(await reconciler.once()).toMatchObject({ taken: ['A'] });
    room.shift(31_000);
    expect(await reconciler.once()).toMatchObject({ lost: ['A'] });
  }
  expect(await room.tasks.views.rows(await room.tasks.store.ids())).toMatchObject([{ station: 'ready', attempts: 0 }]);
});
