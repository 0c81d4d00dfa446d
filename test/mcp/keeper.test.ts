import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { LEASE_CLASSES } from '../../src/coordinator/locks/lock.ts';
import { LOCAL } from '../../src/identity/caller.ts';
import { Keeper } from '../../src/mcp/keeper.ts';
import { operations } from '../../src/operations/index.ts';
import { invoke, type Operation } from '../../src/operations/operation.ts';
import { keyspace } from '../../src/redis/keys.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { type TestRooms, targetOf, theRooms } from '../support/rooms.ts';

const BEAT_MS = LEASE_CLASSES.agent.leaseMs / 3;

let redis: TestRedis;
let rooms: TestRooms;
let clock: FakeClock;
let keeper: Keeper;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  rooms = await theRooms(targetOf(redis.options));
  clock = fakeClock();
  keeper = new Keeper({ operations, clock, ask });
  onTestFinished(() => redis.flush());
  onTestFinished(() => keeper.close());
  const task = { title: 'The form', priority: 5 };
  await use('task.import', { tasks: ['T-1', 'T-2'].map((task_id) => ({ ...task, task_id })) });
});

const named = (name: string): Operation => operations.find((one) => one.name === name)!;
const { signal } = new AbortController();
function ask(operation: Operation, input: unknown): Promise<unknown> {
  return invoke(operation, { rooms, operations, caller: LOCAL, signal }, input);
}
const use = (name: string, input: object) => keeper.ask(named(name), input, signal) as Promise<Record<string, unknown>>;
const claim = async (agent = 'ann') =>
  (await use('work.claim', { agent })) as { task: { task_id: string }; lease: { lock_id: string; expires_at: string } };
const beats = (key: string) => rooms.connection.commands.hget(key, 'heartbeat_count');
const keys = keyspace({ mode: 'standalone' });

test('beats for a task and for a lock until they are given back', async () => {
  const { task, lease } = await claim();
  const lock = await use('lock.acquire', { lock: 'resource:db:prod', agent: 'ann', lease_class: 'agent' });
  for (const count of ['1', '2']) {
    await clock.asleep();
    await clock.advance(BEAT_MS);
    await expect.poll(() => beats(keys.taskLock(task.task_id))).toBe(count);
    await expect.poll(() => beats(keys.resourceLock('db', 'prod'))).toBe(count);
  }

  const other = await claim();
  await use('work.finish', { task: task.task_id, agent: 'ann', lock_id: lease.lock_id, outcome: 'completed' });
  await use('lock.release', { key: 'resource:db:prod', agent: 'ann', lock_id: lock.lock_id });
  await keeper.beatOnce();
  expect(await beats(keys.taskLock(other.task.task_id))).toBe('1');
  expect(await beats(keys.taskLock(task.task_id))).toBeNull();
});

test('gives back what is left when the client has gone, and says why', async () => {
  const { task } = await claim();
  await use('lock.acquire', { lock: 'resource:db:prod', agent: 'ann' });
  await keeper.close();
  expect(await use('task.show', { task: task.task_id })).toMatchObject({ station: 'ready' });
  expect(await use('lock.show', { key: 'resource:db:prod' })).toMatchObject({ state: 'free' });
  expect(JSON.stringify(await use('events.list', { stream: ['work'] }))).toContain('its client went away');
});

test('lets go of what somebody else has by now', async () => {
  const { task, lease } = await claim();
  await use('work.drop', { task: task.task_id, agent: 'ann' });
  const { lease: next } = (await use('work.claim', { agent: 'ben', task: task.task_id })) as Awaited<
    ReturnType<typeof claim>
  >;
  expect(next.lock_id).not.toBe(lease.lock_id);
  await keeper.beatOnce();
  await keeper.beatOnce();
  expect(await beats(keys.taskLock(task.task_id))).toBe('2');
});

test('keeps on after a beat that failed', async () => {
  const { task } = await claim();
  let isDown = true;
  const flaky = new Keeper({
    operations,
    clock: fakeClock(),
    ask: (operation, input) => (isDown ? Promise.reject(new Error('no answer')) : ask(operation, input)),
  });
  onTestFinished(() => flaky.close());
  isDown = false;
  await flaky.ask(named('work.claim'), { agent: 'ann', task: task.task_id }, signal);
  isDown = true;
  await flaky.beatOnce();
  isDown = false;
  await flaky.beatOnce();
  expect(await beats(keys.taskLock(task.task_id))).toBe('1');
});
