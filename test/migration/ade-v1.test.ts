import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { parseLock } from '../../src/coordinator/locks/lock.ts';
import { Locks } from '../../src/coordinator/locks/locks.ts';
import { type AdeV1Options, migrateAdeV1 } from '../../src/migration/ade-v1.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';

let room: RedisRoom;
let options: AdeV1Options;
beforeAll(async () => {
  room = await aRedisRoom();
  const { connection, keyspace, scripts, events, keys } = room;
  const limits = () => ({ leaseMs: 30_000, maxLeaseMs: 900_000, depth: 100 });
  const locks = new Locks({ connection, keyspace, scripts, events, limits });
  options = { connection, keys, scripts, locks, clock: systemClock };
});
beforeEach(() => room.redis.flush());
afterAll(() => room[Symbol.asyncDispose]());

/** What the first version would have left. */
async function v1(): Promise<void> {
  const { client } = room;
  await client.hset('lock:task:T-1', {
    holder_agent_id: 'ann',
    purpose: 'deploy',
    acquired_at: '2026-01-01T00:00:00Z',
  });
  await client.pexpire('lock:task:T-1', 20_000);
  await client.set(
    'lock:resource:database:prod',
    JSON.stringify({ mode: 'shared', holders: [{ agent_id: 'ben' }, { agent_id: 'cat' }] }),
    'PX',
    20_000,
  );
  await client.hset('lock:agent:ann:capacity', { max_tasks: '3', active_tasks: '1' });
  await client.zadd('lock:task:T-1:queue', 1, '{"agent_id":"dan"}');
  await client.hset('lock:task:T-2', { holder_agent_id: 'eve', expires_at: '2020-01-01T00:00:00Z' });
  await client.set('lock:strange', 'what is this');
  for (const [number, status] of ['0', '1', '2', '3', '9'].entries()) {
    await client.hset(`ade:approval:request:T-9.${number}`, { task_id: 'T-9', status });
  }
  await client.hset('ade:approval:request:T-9.7', { task_id: 'T-9', status: 'APPROVED' });
}
const outcomes = async (apply: boolean) =>
  Object.fromEntries((await migrateAdeV1(options, apply)).map(({ key, outcome }) => [key, outcome]));
const everything = async () => (await room.client.keys('*')).toSorted();
const PLAN = {
  'ade:approval:request:T-9.0': 'move',
  'ade:approval:request:T-9.1': 'move',
  'ade:approval:request:T-9.2': 'move',
  'ade:approval:request:T-9.3': 'move',
  'ade:approval:request:T-9.4': 'leave',
  'lock:agent:ann:capacity': 'move',
  'lock:resource:database:prod': 'move',
  'lock:strange': 'leave',
  'lock:task:T-1': 'move',
  'lock:task:T-1:queue': 'drop',
  'lock:task:T-2': 'drop',
};

test('a dry run says what would become of each key, and changes nothing', async () => {
  await v1();
  const before = await everything();
  expect(await outcomes(false)).toEqual(PLAN);
  expect(await everything()).toEqual(before);
  expect(await room.client.hget('ade:approval:request:T-9.1', 'status')).toBe('1');
});

test('applied, locks are held by whom they were for the time they had left, and statuses are words', async () => {
  await v1();
  expect(await outcomes(true)).toEqual(PLAN);
  const { locks } = options;
  const lock = await locks.inspect(parseLock('task:T-1'));
  expect(lock.holders).toEqual([expect.objectContaining({ agent: 'ann', purpose: 'deploy' })]);
  expect(await room.client.pttl(room.keys.taskLock('T-1'))).toBeLessThanOrEqual(20_000);
  const shared = await locks.inspect(parseLock('resource:database:prod'));
  expect(shared.holders.map(({ agent }) => agent).toSorted()).toEqual(['ben', 'cat']);
  expect(await locks.capacity('ann')).toMatchObject({ maxTasks: 3 });
  const statuses = [0, 1, 2, 3, 4, 7].map((n) => room.client.hget(`ade:approval:request:T-9.${n}`, 'status'));
  expect(await Promise.all(statuses)).toEqual(['PENDING', 'APPROVED', 'REJECTED', 'DELEGATED', '9', 'APPROVED']);
  expect((await everything()).filter((key) => key.startsWith('lock:'))).toEqual(['lock:strange']);
});

test('run again, it finds only what it left', async () => {
  await v1();
  await outcomes(true);
  expect(await outcomes(true)).toEqual({ 'ade:approval:request:T-9.4': 'leave', 'lock:strange': 'leave' });
});
