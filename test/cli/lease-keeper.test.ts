import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { LeaseKeeper } from '../../src/cli/lease-keeper.ts';
import { LOCAL } from '../../src/identity/caller.ts';
import { operations } from '../../src/operations/index.ts';
import { invoke, type Operation } from '../../src/operations/operation.ts';
import { keyspace } from '../../src/redis/keys.ts';
import { fakeClock } from '../support/clock.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { type TestRooms, targetOf, theRooms } from '../support/rooms.ts';

let redis: TestRedis;
let rooms: TestRooms;
let keeper: LeaseKeeper;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  rooms = await theRooms(targetOf(redis.options));
  keeper = new LeaseKeeper(operations, ask);
  onTestFinished(() => redis.flush());
  const task = { title: 'The form', priority: 5 };
  await use('task.import', { tasks: ['T-1', 'T-2'].map((task_id) => ({ ...task, task_id })) });
});

const { signal } = new AbortController();
const keys = keyspace({ mode: 'standalone' });
const named = (name: string): Operation => operations.find((one) => one.name === name)!;
function ask(operation: Operation, input: unknown): Promise<unknown> {
  return invoke(operation, { rooms, operations, caller: LOCAL, signal }, input);
}
const use = (name: string, input: object) => keeper.ask(named(name), input, signal) as Promise<Record<string, unknown>>;
const claim = async (agent: string, task?: string) =>
  (await use('work.claim', { agent, task })) as { task: { task_id: string }; lease: { lock_id: string } };
const beats = (key: string) => rooms.connection.commands.hget(key, 'heartbeat_count');

test('beats for a task and a lock until they are finished and released', async () => {
  const clock = fakeClock();
  const beating = keeper.beating(clock);
  await beating.start();
  onTestFinished(() => beating.stop());
  const { task, lease } = await claim('ann');
  const lock = await use('lock.acquire', { lock: 'resource:db:prod', agent: 'ann' });
  const [ofTask, ofLock] = [keys.taskLock(task.task_id), keys.resourceLock('db', 'prod')];
  for (const count of ['1', '2']) {
    await clock.asleep();
    await clock.advance(61_000);
    await expect.poll(() => Promise.all([beats(ofTask), beats(ofLock)])).toEqual([count, count]);
  }

  const other = await claim('ben');
  await use('work.finish', { task: task.task_id, agent: 'ann', lock_id: lease.lock_id, outcome: 'completed' });
  await use('lock.release', { key: 'resource:db:prod', agent: 'ann', lock_id: lock.lock_id });
  expect(await keeper.beatOnce(signal)).toBe(1);
  expect(await beats(keys.taskLock(other.task.task_id))).toBe('1');
});

test('gives back what is left, a place in line as well, once, and says why', async () => {
  const { task } = await claim('ann');
  await use('lock.acquire', { lock: 'resource:db:prod', agent: 'ann' });
  await ask(named('lock.acquire'), { lock: 'resource:db:test', agent: 'ben' });
  await use('lock.acquire', { lock: 'resource:db:test', agent: 'ann', wait: 60, block: 0 });
  await keeper.giveBack(signal);
  expect(await use('task.show', { task: task.task_id })).toMatchObject({ station: 'ready' });
  expect(await use('lock.show', { key: 'resource:db:prod' })).toMatchObject({ state: 'free' });
  expect(await use('lock.show', { key: 'resource:db:test' })).toMatchObject({ state: 'held', waiters: [] });
  expect(JSON.stringify(await use('events.list', { stream: ['work'] }))).toContain('its client went away');

  await claim('ben', task.task_id).then(({ lease }) => expect(lease.lock_id).toBeTruthy());
  keeper = new LeaseKeeper(operations, ask);
  await keeper.giveBack(signal);
  expect(await use('task.show', { task: task.task_id })).toMatchObject({ station: 'working' });
});

test('lets go of what somebody else has by now', async () => {
  const { task } = await claim('ann');
  await ask(named('work.drop'), { task: task.task_id, agent: 'ann' });
  await ask(named('work.claim'), { agent: 'ben', task: task.task_id });
  expect(await keeper.beatOnce(signal)).toBe(0);
  await keeper.giveBack(signal);
  expect(await use('task.show', { task: task.task_id })).toMatchObject({ station: 'working', agent_id: 'ben' });
});

test('goes on after a time without Redis, and leaves alone what was finished meanwhile and only noted', async () => {
  const own = await startTestRedis();
  rooms = await theRooms(targetOf(own.options));
  await use('task.import', { tasks: [{ title: 'The form', priority: 5, task_id: 'T-1' }] });
  const { task, lease } = await claim('ann');
  await own.stop();
  await expect(keeper.beatOnce(signal)).rejects.toMatchObject({ code: expect.stringMatching(/^REDIS_/) });
  const finished = { task: task.task_id, agent: 'ann', lock_id: lease.lock_id, outcome: 'completed' };
  expect(await use('work.finish', finished)).toMatchObject({ journal_id: expect.any(String) });
  expect(await keeper.beatOnce(signal)).toBe(0);
});
