import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { until } from '../../support/until.ts';
import { complaints } from './invariants.ts';
import { aLockRoom, asks, held, type LockRoom } from './room.ts';

let room: LockRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  room = await aLockRoom();
  ask = asks(room.locks);
});
beforeEach(() => room.reset());
afterAll(() => room.stop());

const JOB = 'task:t-1';
const DB = 'resource:db:main';
const WAIT = { waitMs: 60_000 };
const words = async (word: string) => (await room.told()).filter((line) => line.startsWith(word));

test('ends a lease that ran out, tells of it once, and calls the next, however many sweep', async () => {
  await ask('ann', JOB);
  await ask('bob', JOB, { waitMs: 600_000, leaseClass: 'agent' });
  room.pass(30_001);

  const swept = await Promise.all([1, 2, 3].map(() => sweepOnce(room.locks)));

  expect(swept.reduce((sum, { expired }) => sum + expired, 0)).toBe(1);
  expect(await words('expired')).toEqual(['expired task:t-1 ann']);
  expect(await words('promoted')).toEqual(['promoted task:t-1 bob']);
  expect(await ask('bob', JOB, WAIT)).toMatchObject({ outcome: 'granted' });
  await room.locks.release(held('bob', JOB));
  expect(await complaints(room, true)).toEqual([]);
});

test('says `expired` on the channel of the lock', async () => {
  const said: string[] = [];
  const listener = room.redis.client();
  await listener.subscribe('ade:lock:task:t-1:channel');
  listener.on('message', (_channel, word) => said.push(word));
  await ask('ann', JOB);
  await ask('bob', JOB, { waitMs: 600_000, leaseClass: 'agent' });
  room.pass(30_001);
  await sweepOnce(room.locks);
  await ask('bob', JOB, WAIT);
  await room.locks.release(held('bob', JOB));
  await until('all words', () => said.length === 6);
  expect(said).toEqual(['acquired:ann', 'queued:bob', 'expired', 'promoted:bob', 'acquired:bob', 'released:bob']);
});

test('ends a lock whose key is already gone', async () => {
  await ask('ann', JOB);
  await room.redis.client().del('ade:lock:task:t-1');
  room.pass(30_001);

  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 1 });
  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 0 });
  expect(await words('expired')).toEqual(['expired task:t-1 ann']);
  expect(await complaints(room, true)).toEqual([]);
});

test('ends each reader of a lock whose key is already gone, and no reader that gave it back', async () => {
  for (const agent of ['ann', 'bob', 'cyd']) await ask(agent, `${DB}+shared`);
  await room.locks.release(held('cyd', DB));
  await room.redis.client().del('ade:lock:resource:db:main');
  room.pass(30_001);

  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 2 });
  expect((await words('expired')).toSorted()).toEqual(['expired resource:db:main ann', 'expired resource:db:main bob']);
  expect(await complaints(room, true)).toEqual([]);
});

test('goes on with the readers that another sweep left', async () => {
  for (const agent of ['ann', 'bob']) await ask(agent, `${DB}+shared`);
  await room.redis.client().del('ade:lock:resource:db:main');
  room.pass(30_001);

  await room.locks.reapFor(parseLock(DB), 'bob');
  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 1 });
  expect(await words('expired')).toEqual(['expired resource:db:main bob', 'expired resource:db:main ann']);
  expect(await ask('wim', DB)).toMatchObject({ outcome: 'granted' });
});

test('does not take a writer that read before for a reader when its key is gone', async () => {
  await ask('ann', `${DB}+shared`);
  await ask('ann', DB);
  await room.redis.client().del('ade:lock:resource:db:main');
  room.pass(30_001);
  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 1 });
  const { events } = await room.events.latest({ streams: ['lock'], limit: 100 });
  const [read, wrote, ended] = events.map(({ payload }) => payload.fencing_token);
  expect(ended).toBe(wrote);
  expect(ended).not.toBe(read);
});

test('never takes a lock that was renewed', async () => {
  await ask('ann', JOB);
  const key = 'ade:lock:task:t-1';
  await room.redis.client().zadd('ade:lock:registry', 1, key);

  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 0 });
  expect((await room.locks.inspect(parseLock(JOB))).holders).toMatchObject([{ agent: 'ann', state: 'live' }]);
  expect(Number(await room.redis.client().zscore('ade:lock:registry', key))).toBeGreaterThan(1);
});

test('ends one silent reader of several, and lets the others read on', async () => {
  for (const agent of ['ann', 'bob', 'cyd', 'dee', 'eve']) await ask(agent, `${DB}+shared`);
  await ask('wim', DB, { waitMs: 600_000, leaseClass: 'agent' });
  room.pass(20_000);
  for (const agent of ['ann', 'bob', 'dee', 'eve']) await room.locks.heartbeat(held(agent, DB));
  room.pass(10_001);

  expect(await sweepOnce(room.locks)).toMatchObject({ expired: 1 });
  expect(await words('expired')).toEqual(['expired resource:db:main cyd']);
  expect((await room.locks.inspect(parseLock(DB))).holders.map(({ agent }) => agent)).toEqual([
    'ann',
    'bob',
    'dee',
    'eve',
  ]);
  expect(await room.redis.client().exists('ade:lock:index:agent:cyd')).toBe(0);
  expect(await complaints(room)).toEqual([]);
  for (const agent of ['ann', 'bob', 'dee', 'eve']) await room.locks.release(held(agent, DB));
  expect(await ask('wim', DB, WAIT)).toMatchObject({ outcome: 'granted' });
});

test('tells of each of several silent readers by its own name', async () => {
  for (const agent of ['ann', 'bob', 'cyd']) await ask(agent, `${DB}+shared`);
  room.pass(20_000);
  await room.locks.heartbeat(held('cyd', DB));
  room.pass(10_001);

  await sweepOnce(room.locks);

  expect((await words('expired')).toSorted()).toEqual(['expired resource:db:main ann', 'expired resource:db:main bob']);
  expect(await complaints(room)).toEqual([]);
});

test('removes waiters that fell silent, also before a free lock that nobody asks for any more', async () => {
  await ask('ann', JOB);
  await ask('bob', JOB, WAIT);
  await room.locks.release(held('ann', JOB));
  room.pass(10_001);

  expect(await sweepOnce(room.locks)).toMatchObject({ silent: 1 });
  expect(await room.redis.client().keys('ade:lock:*')).toEqual(['ade:lock:task:t-1:fence']);
});

test('looks again at a line whose waiters still live', async () => {
  await ask('ann', JOB, { leaseMs: 100_000 });
  await ask('bob', JOB, WAIT);
  await ask('cyd', JOB, WAIT);
  room.pass(6_000);
  await ask('cyd', JOB, WAIT);
  room.pass(4_001);
  expect(await sweepOnce(room.locks)).toMatchObject({ silent: 1 });
  expect(await room.locks.dueKeys('waiting', 10)).toEqual([]);
  room.pass(10_001);
  expect(await sweepOnce(room.locks)).toMatchObject({ silent: 1 });
  expect(
    await room.redis.client().exists('ade:lock:task:t-1:queue', 'ade:lock:waitfor:bob', 'ade:lock:waitfor:cyd'),
  ).toBe(0);
});

test('removes from registry and indexes what no lock bears out', async () => {
  const redis = room.redis.client();
  await ask('ann', JOB);
  await redis.zadd('ade:lock:registry', 1, 'ade:lock:task:ghost', 2, 'no lock at all');
  await redis.sadd('ade:lock:index:agent:gus', 'ade:lock:task:t-1', 'ade:lock:task:ghost', 'nonsense');
  await redis.sadd('ade:lock:index:resource:db', 'ade:lock:resource:db:ghost');

  expect(await sweepOnce(room.locks)).toMatchObject({ orphans: expect.toSatisfy((n: number) => n > 0) });

  expect(await complaints(room, true)).toEqual([]);
  expect(await redis.smembers('ade:lock:index:agent:ann')).toEqual(['ade:lock:task:t-1']);
  expect(await redis.exists('ade:lock:index:agent:gus', 'ade:lock:index:resource:db')).toBe(0);
});

test('a raw client’s entry in the queue holds nobody up', async () => {
  const redis = room.redis.client();
  await redis.zadd('ade:lock:task:t-1:queue', 1, '{"agent_id":"raw"}', 2, 'no JSON');
  expect(await ask('ann', JOB)).toMatchObject({ outcome: 'granted' });
  expect(await redis.exists('ade:lock:task:t-1:queue')).toBe(0);
});
