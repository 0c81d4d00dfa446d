import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import { LockChannels } from '../../../src/coordinator/locks/channels.ts';
import { keepAlive } from '../../../src/coordinator/locks/heartbeat.ts';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { Waiter } from '../../../src/coordinator/locks/waiter.ts';
import { complaints, mustBeSound } from './invariants.ts';
import { aLockRoom, asks, held, type LockRoom, wanted } from './room.ts';

const JOB = 'task:t-1';
const WAIT = { waitMs: 60_000 };

let room: LockRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  room = await aLockRoom();
  ask = asks(room.locks);
});
afterAll(() => room.stop());
beforeEach(() => room.reset());
afterEach(() => mustBeSound(room));

const line = async (lock: string) => (await room.locks.inspect(parseLock(lock))).waiters.map(({ agent }) => agent);
const FOREIGN = { code: 'REDIS_KEY_FOREIGN' };
const REFUSED = /is not a valid|does not name a lock/;

describe('something of another kind planted at', () => {
  test.each([':queue', ':fence'])('a free lock’s %s: it is not granted, and nothing is written', async (ending) => {
    const redis = room.redis.client();
    await redis.set(`ade:lock:task:t-1${ending}`, 'planted');
    await expect(ask('ann', JOB)).rejects.toMatchObject(FOREIGN);
    expect(await redis.keys('*')).toEqual([`ade:lock:task:t-1${ending}`]);
    await redis.del(`ade:lock:task:t-1${ending}`);
  });

  test.each(['ade:lock:registry', 'ade:lock:index:agent:ann'])(
    '%s: it is not granted; at most an entry too many is left, for the sweeper',
    async (planted) => {
      const redis = room.redis.client();
      await redis.set(planted, 'planted');
      await expect(ask('ann', JOB)).rejects.toMatchObject(FOREIGN);
      await redis.del(planted);
      expect(await redis.exists('ade:lock:task:t-1', 'ade:lock:task:t-1:fence')).toBe(0);
      room.pass(31_000);
      await sweepOnce(room.locks);
      expect(await complaints(room, true)).toEqual([]);
    },
  );

  test.each([':queue', ':waiters'])(
    'a held lock’s %s: nobody joins the line, and the holder keeps it',
    async (ending) => {
      const redis = room.redis.client();
      await ask('zoe', JOB);
      await redis.set(`ade:lock:task:t-1${ending}`, 'planted');
      await expect(ask('ann', JOB, WAIT)).rejects.toMatchObject(FOREIGN);
      expect(await room.locks.heartbeat(held('zoe', JOB))).toMatchObject({ outcome: 'extended' });
      await redis.del(`ade:lock:task:t-1${ending}`);
      expect(await line(JOB)).toEqual([]);
      expect(await ask('ann', JOB, WAIT)).toMatchObject({ outcome: 'queued', position: 1 });
    },
  );

  test('the key of a lock that was held: its holder is told, and it is no one’s until it is removed', async () => {
    const redis = room.redis.client();
    await ask('zoe', JOB);
    await redis.set('ade:lock:task:t-1', 'planted');
    await expect(room.locks.heartbeat(held('zoe', JOB))).rejects.toMatchObject(FOREIGN);
    await expect(ask('ann', JOB)).rejects.toMatchObject(FOREIGN);
    await redis.del('ade:lock:task:t-1');
    expect(await ask('ann', JOB)).toMatchObject({ outcome: 'granted' });
    expect(await room.told()).toContain('expired task:t-1 zoe');
  });

  test('one lock keeps no other from being swept', async () => {
    const redis = room.redis.client();
    await ask('zoe', ['task:a', 'task:b', 'task:c']);
    await redis.set('ade:lock:task:b', 'planted');
    room.pass(31_000);
    expect(await sweepOnce(room.locks)).toMatchObject({ expired: 2, foreign: 1 });
    expect(await sweepOnce(room.locks)).toMatchObject({ expired: 0, foreign: 0 });
    expect(await redis.exists('ade:lock:task:a', 'ade:lock:task:c')).toBe(0);
    await redis.del('ade:lock:task:b');
    room.pass(60_000);
    expect(await sweepOnce(room.locks)).toMatchObject({ expired: 1, foreign: 0 });
    expect(await complaints(room, true)).toEqual([]);
  });
});

describe.each([
  ['an hour behind', -3_600_000],
  ['an hour ahead', 3_600_000],
])('a daemon whose clock is %s', (_, offMs) => {
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + offMs };

  test('grants, waits and beats as any other', async () => {
    const outcome = await ask('ann', JOB, { leaseMs: 10_000 });
    const [seconds] = await room.redis.client().time();
    if (outcome.outcome !== 'granted') throw new Error('not granted');
    const leaseMs = Date.parse(outcome.grants[0]!.expiresAt) - Number(seconds) * 1000;
    expect(leaseMs).toBeGreaterThan(8_000);
    expect(leaseMs).toBeLessThan(12_000);
    const waiter = new Waiter({ locks: room.locks, channels: new LockChannels(room.connection), clock });
    const waiting = waiter.acquire({ agent: 'bob', lockId: 'bob-1', locks: wanted(JOB), ...WAIT });
    const kept = keepAlive({
      beat: async () => {
        await room.locks.heartbeat(held('ann', JOB), 10_000);
        await room.locks.release(held('ann', JOB));
        return { outcome: 'extended', leaseMs: 10_000 };
      },
      lock: JOB,
      lockId: 'ann-1',
      agent: 'ann',
      leaseMs: 10_000,
      intervalMs: 20,
      clock,
    });
    expect(await waiting).toMatchObject({ outcome: 'granted' });
    expect(kept.signal.aborted).toBe(false);
    await kept.stop();
  });
});

test('the Redis clock stepping ahead ends leases early, says so, and the next token is higher', async () => {
  await ask('ann', JOB);
  room.pass(60_000);
  expect(await room.locks.heartbeat(held('ann', JOB))).toMatchObject({ outcome: 'lost' });
  const bob = await ask('bob', JOB);
  room.pass(-60_000);
  expect(await room.told()).toContain('expired task:t-1 ann');
  await room.locks.release(held('bob', JOB));
  const cyd = await ask('cyd', JOB);
  const token = (outcome: typeof bob) => (outcome.outcome === 'granted' ? outcome.grants[0]!.token : 0);
  expect(token(cyd)).toBeGreaterThan(token(bob));
});

test('a lock that is named twice in one call is one, and held alone if one of the wishes was', async () => {
  const locks = ['resource:db:x+shared', 'resource:db:x', 'task:a', 'task:a'];
  const outcome = await ask('ann', locks);
  expect(outcome).toMatchObject({ outcome: 'granted', grants: [{ mode: 'exclusive' }, {}] });
  if (outcome.outcome !== 'granted') return;
  for (const { lock, token } of outcome.grants) expect((await room.locks.inspect(lock)).token).toBe(token);
  expect(await ask('bob', 'resource:db:x+shared')).toMatchObject({ outcome: 'held' });
});

test('words in a purpose or a resource that look like Lua, JSON or a protocol are words', async () => {
  const words = `'] redis.call('FLUSHALL') --"}\r\n*1\r\n$8\r\nFLUSHALL\r\n\u0000${'\u{1f512}'}{task:1}`;
  const lock = `resource:file:${words.replaceAll(/\p{Cc}/gu, '')}`;
  for (const mode of ['', '+shared']) {
    expect(await ask('ann', `${lock}x`, { purpose: words })).toMatchObject({ outcome: 'granted' });
    const parsed = [{ lock: parseLock(`${lock}${mode}`), mode: mode ? 'shared' : 'exclusive' }] as const;
    const outcome = await room.locks.acquire({
      agent: 'ann',
      lockId: `m${mode.length}`,
      locks: parsed,
      purpose: words,
    });
    expect(outcome).toMatchObject({ outcome: 'granted' });
    const { holders } = await room.locks.inspect(parsed[0].lock);
    expect(holders[0]?.purpose).toBe(words);
    await ask('bob', `${lock}x`, WAIT);
  }
  for (const key of await room.redis.client().keys('*')) expect(key).toMatch(/^[A-Za-z0-9:._%{}-]+$/);
  await room.locks.waitGraph();
  expect((await room.told()).length).toBeGreaterThan(0);
});

test.each(
  [
    '',
    ' ',
    'a b',
    'a:b',
    'a{b',
    'a}b',
    'a*',
    '..',
    'a\r\nb',
    'a\u0000',
    'x'.repeat(10_000),
    '\u{1f512}',
    '\ud800',
    '__proto__',
    'constructor',
    'index',
    'registry',
    '123:queue',
    "'] redis.call('FLUSHALL",
  ].map((name) => [name.slice(0, 30), name]),
)('an agent, a task or a type of resource cannot be called %j', async (_, name) => {
  expect(() => parseLock(`task:${name}`)).toThrow(REFUSED);
  expect(() => parseLock(`agent:${name}`)).toThrow(REFUSED);
  await expect(async () => ask(name, JOB, { lockId: 'x' })).rejects.toThrow(REFUSED);
  if (!name.includes(':') && !['index', 'registry', 'constructor'].includes(name))
    expect(() => parseLock(`resource:${name}:x`)).toThrow(REFUSED);
  expect(await room.redis.client().dbsize()).toBe(0);
});
