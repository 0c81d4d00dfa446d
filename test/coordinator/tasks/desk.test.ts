import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { TaskDesk } from '../../../src/coordinator/tasks/desk.ts';
import { type FakeClock, fakeClock } from '../../support/clock.ts';
import { aTaskRoom, expectSound, type TaskRoom } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
afterEach(() => expectSound(room));

let clock: FakeClock;
let desk: TaskDesk;
beforeEach(async () => {
  await room.reset();
  clock = fakeClock();
  const { connection, tasks } = room;
  desk = new TaskDesk({ connection, store: tasks.store, work: tasks.work, clock });
});

const never = new AbortController().signal;
const wait = (agent: string, more = {}, signal = never) => desk.claim({ agent, ...more }, { waitMs: 60_000, signal });
const claimed = (task: string) => ({ outcome: 'claimed', task: { task_id: task } });

async function listening(): Promise<AsyncDisposable> {
  const service = desk.listening();
  await service.start();
  return { [Symbol.asyncDispose]: () => service.stop() };
}

test('whoever waits gets a task as soon as it is ready, without a clock', async () => {
  await using _ = await listening();
  await room.add('A', { task_id: 'B', depends_on: ['A'] });
  expect(await wait('ann')).toMatchObject(claimed('A'));
  const ben = wait('ben');
  await clock.asleep();
  await room.tasks.work.complete({ task: 'A', agent: 'ann' });
  expect(await ben).toMatchObject(claimed('B'));
});

test('one task goes to one of fifty, and the others wait on', async () => {
  await using _ = await listening();
  const gone = new AbortController();
  const all = Array.from({ length: 50 }, (_, at) => wait(`agent-${at}`, {}, gone.signal));
  await clock.asleep(50);
  await room.add('A');
  expect(await Promise.race(all)).toMatchObject(claimed('A'));
  expect(desk.waiting()).toHaveLength(49);
  gone.abort();
  const outcomes = (await Promise.all(all)).map(({ outcome }) => outcome);
  expect(outcomes.filter((outcome) => outcome === 'claimed')).toHaveLength(1);
  expect(desk.waiting()).toEqual([]);
});

test('whoever is of another type is not called', async () => {
  await using _ = await listening();
  const gone = new AbortController();
  const designer = wait('dan', { type: 'shadcn-design-engineer' }, gone.signal);
  const tester = wait('tom', { type: 'qa-test-engineer' });
  await clock.asleep(2);
  await room.add({ task_id: 'A', agent_type: 'qa-test-engineer' });
  expect(await tester).toMatchObject(claimed('A'));
  gone.abort();
  expect(await designer).toMatchObject({ outcome: 'none' });
});

test('a call that is missed costs seconds, not the task', async () => {
  const ann = wait('ann');
  await clock.asleep();
  await room.add('A');
  await clock.advance(6_000);
  expect(await ann).toMatchObject(claimed('A'));
});

test('whoever has waited long enough, or calls it off, is told that there is nothing', async () => {
  const gone = new AbortController();
  const [ann, ben] = [wait('ann'), wait('ben', {}, gone.signal)];
  await clock.asleep(2);
  gone.abort();
  expect(await ben).toMatchObject({ outcome: 'none' });
  const end = clock.now() + 60_000;
  while (clock.now() < end) {
    await clock.asleep();
    await clock.advance(5_000);
  }
  expect(await ann).toMatchObject({ outcome: 'none' });
  expect(desk.waiting()).toEqual([]);
});
