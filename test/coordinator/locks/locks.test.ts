import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { complaints, mustBeSound } from './invariants.ts';
import { aLockRoom, asks, held, type LockRoom } from './room.ts';

let room: LockRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  room = await aLockRoom();
  ask = asks(room.locks);
});
beforeEach(() => room.reset());
afterEach(() => mustBeSound(room));
afterAll(() => room.stop());

const JOB = 'task:t-1';
const DB = 'resource:database:prod-db-01';
const READ_DB = `${DB}+shared`;
const WAIT = { waitMs: 60_000 };
const tokenOf = (outcome: Awaited<ReturnType<typeof ask>>) =>
  outcome.outcome === 'granted' ? (outcome.grants[0]?.token ?? 0) : Number.NaN;
const give = (agent: string, lock: string | readonly string[], lockId?: string) =>
  room.locks.release(held(agent, lock, lockId));
const beat = (agent: string, lock: string | readonly string[], ms?: number, lockId?: string) =>
  room.locks.heartbeat(held(agent, lock, lockId), ms);
const agents = async (lock: string) => (await room.locks.inspect(parseLock(lock))).holders.map(({ agent }) => agent);
const line = async (lock: string) => (await room.locks.inspect(parseLock(lock))).waiters.map(({ agent }) => agent);

describe('a task lock', () => {
  test('is granted under the key and fields of the seed', async () => {
    const outcome = await ask('ann', JOB, { purpose: 'migrate' });

    expect(outcome).toMatchObject({ outcome: 'granted', again: false, grants: [{ agent: 'ann', lockId: 'ann-1' }] });
    const redis = room.redis.client();
    const hash = await redis.hgetall('ade:lock:task:t-1');
    expect(hash).toEqual({
      holder_agent_id: 'ann',
      acquired_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      expires_at: expect.stringMatching(/Z$/),
      purpose: 'migrate',
      heartbeat_count: '0',
      queue_length: '0',
      lock_id: 'ann-1',
      fencing_token: String(tokenOf(outcome)),
    });
    expect(Date.parse(hash.expires_at as string) - Date.parse(hash.acquired_at as string)).toBe(30_000);
    expect(await redis.pttl('ade:lock:task:t-1')).toBeGreaterThan(29_000);
    expect(await redis.smembers('ade:lock:index:agent:ann')).toEqual(['ade:lock:task:t-1']);
    const score = Number(await redis.zscore('ade:lock:registry', 'ade:lock:task:t-1'));
    expect(score * 1000).toBeCloseTo(Date.parse(hash.expires_at as string), -1);
    expect(await room.told()).toEqual(['acquired task:t-1 ann']);
  });

  test('is given back, and a second release is recognised', async () => {
    await ask('ann', JOB);

    expect(await give('ann', JOB)).toMatchObject([{ outcome: 'released' }]);
    expect(await give('ann', JOB)).toMatchObject([{ outcome: 'already' }]);
    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'granted' });
    expect(await room.told()).toEqual(['acquired task:t-1 ann', 'released task:t-1 ann', 'acquired task:t-1 bob']);
    expect(await complaints(room, true)).toEqual([]);
  });

  test('says who holds it when it is not to be had', async () => {
    await ask('ann', JOB, { purpose: 'migrate' });

    expect(await ask('bob', JOB)).toMatchObject({
      outcome: 'held',
      blocked: { lock: parseLock(JOB), waiting: 0, holders: [{ agent: 'ann', purpose: 'migrate' }] },
    });
    expect(await room.redis.client().exists('ade:lock:task:t-1:queue')).toBe(0);
  });

  test('answers a repeated acquire with the same grant', async () => {
    const first = await ask('ann', JOB);
    const again = await ask('ann', JOB);

    expect(again).toMatchObject({ outcome: 'granted', again: true });
    expect(tokenOf(again)).toBe(tokenOf(first));
    expect(await room.redis.client().zcard('ade:lock:registry')).toBe(1);
    expect(await room.told()).toEqual(['acquired task:t-1 ann']);
  });

  test('is not granted anew to a request that was answered, used and given back', async () => {
    await ask('ann', JOB);
    await give('ann', JOB);

    expect(await ask('ann', JOB)).toMatchObject({ outcome: 'spent' });
    expect(await ask('ann', JOB, WAIT)).toMatchObject({ outcome: 'spent' });
    expect(await agents(JOB)).toEqual([]);
  });

  test('keeps a late release of an earlier grant from ending the next one', async () => {
    await ask('ann', JOB, { lockId: 'one' });
    await give('ann', JOB, 'one');
    await ask('ann', JOB, { lockId: 'two' });

    expect(await give('ann', JOB, 'one')).toMatchObject([{ outcome: 'lost' }]);
    expect(await beat('ann', JOB, 1_000, 'one')).toMatchObject({ outcome: 'lost' });
    expect(await agents(JOB)).toEqual(['ann']);
  });

  test('is not given back or renewed by another agent that knows its lock_id', async () => {
    await ask('ann', JOB);

    expect(await give('bob', JOB, 'ann-1')).toMatchObject([{ outcome: 'lost' }]);
    expect(await beat('bob', JOB, 1_000, 'ann-1')).toMatchObject({ outcome: 'lost' });
    expect(await agents(JOB)).toEqual(['ann']);
  });

  test.each([JOB, DB, READ_DB])('is not had by another agent that asks under its lock_id: %s', async (lock) => {
    const lockId = 'one';
    await ask('ann', lock, { lockId });

    expect(await ask('bob', lock, { lockId })).toMatchObject({ outcome: 'refused', why: 'foreign' });
    expect(await ask('bob', lock, { lockId, ...WAIT })).toMatchObject({ outcome: 'refused', why: 'foreign' });
    expect(await agents(lock.replace('+shared', ''))).toEqual(['ann']);
    expect(await ask('ann', lock, { lockId })).toMatchObject({ outcome: 'granted', again: true });
  });

  test.each([JOB, DB])('is not had in the place of another agent that waits under this lock_id: %s', async (lock) => {
    await ask('zoe', lock);
    await ask('ann', lock, { lockId: 'one', ...WAIT });
    const steal = () => ask('bob', lock, { lockId: 'one', queued: true, ...WAIT });

    expect(await steal()).toMatchObject({ outcome: 'refused', why: 'foreign' });
    expect(await room.locks.cancelWait(held('bob', lock, 'one'))).toBe(false);
    await give('zoe', lock);
    expect(await steal()).toMatchObject({ outcome: 'refused', why: 'foreign' });
    expect(await line(lock)).toEqual(['ann']);
    expect(await ask('ann', lock, { lockId: 'one', queued: true, ...WAIT })).toMatchObject({ outcome: 'granted' });
  });

  test('has tokens that rise, also when the clock steps back and when the fence is deleted', async () => {
    const tokens: number[] = [];
    for (const [lockId, shiftMs] of [
      ['a', 0],
      ['b', -10_000],
      ['c', 60_000],
      ['d', -50_000],
    ] as const) {
      room.pass(shiftMs);
      tokens.push(tokenOf(await ask('ann', JOB, { lockId })));
      await give('ann', JOB, lockId);
    }
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(4);
    room.pass(60_001);
    await room.redis.client().del('ade:lock:task:t-1:fence');
    expect(tokenOf(await ask('ann', JOB, { lockId: 'e' }))).toBeGreaterThan(tokens[3] as number);
  });

  test('treats a lock that someone deleted by hand as expired, once, with a higher token', async () => {
    const first = tokenOf(await ask('ann', JOB));
    await room.redis.client().del('ade:lock:task:t-1');

    expect(tokenOf(await ask('bob', JOB))).toBeGreaterThan(first);
    expect(await room.told()).toEqual(['acquired task:t-1 ann', 'expired task:t-1 ann', 'acquired task:t-1 bob']);
    expect(await room.redis.client().exists('ade:lock:index:agent:ann')).toBe(0);
  });

  test('of the wrong type is refused before anything is written', async () => {
    const redis = room.redis.client();
    await redis.set('ade:lock:task:t-1', 'planted');

    await expect(ask('ann', JOB)).rejects.toMatchObject({ code: 'REDIS_KEY_FOREIGN' });
    expect(await redis.keys('ade:lock:*')).toEqual(['ade:lock:task:t-1']);
    await redis.del('ade:lock:task:t-1');
  });

  test('survives a flush of the scripts', async () => {
    await ask('ann', JOB);
    await room.redis.client().script('FLUSH');

    expect(await ask('ann', JOB)).toMatchObject({ outcome: 'granted', again: true });
    expect(await give('ann', JOB)).toMatchObject([{ outcome: 'released' }]);
  });

  test('keeps its fence for ninety days', async () => {
    await ask('ann', JOB);
    expect(await room.redis.client().ttl('ade:lock:task:t-1:fence')).toBeGreaterThan(89 * 86_400);
  });
});

describe('a lease', () => {
  test('ends at its end: the next gets the lock, the silent holder is told LOST and changes nothing', async () => {
    await ask('ann', JOB);
    room.pass(25_000);
    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'held' });
    room.pass(5_000);
    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'granted' });

    const before = await room.redis.client().hgetall('ade:lock:task:t-1');
    expect(await beat('ann', JOB)).toMatchObject({ outcome: 'lost' });
    expect(await give('ann', JOB)).toMatchObject([{ outcome: 'lost' }]);
    expect(await room.redis.client().hgetall('ade:lock:task:t-1')).toEqual(before);
    expect(await room.told()).toEqual(['acquired task:t-1 ann', 'expired task:t-1 ann', 'acquired task:t-1 bob']);
  });

  test('that is over is told as LOST to its own holder before anyone else looks', async () => {
    await ask('ann', JOB);
    room.pass(30_001);

    expect(await beat('ann', JOB)).toMatchObject({ outcome: 'lost' });
    expect(await give('ann', JOB)).toMatchObject([{ outcome: 'lost' }]);
    expect(await ask('ann', JOB)).toMatchObject({ outcome: 'spent' });
  });

  test('makes no key when a beat comes after the end', async () => {
    await ask('ann', JOB);
    await room.redis.client().del('ade:lock:task:t-1');

    expect(await beat('ann', JOB)).toMatchObject({ outcome: 'lost' });
    expect(await room.redis.client().exists('ade:lock:task:t-1')).toBe(0);
    await sweepLate();
  });

  test('is extended by beats, which are counted, and never shortened', async () => {
    await ask('ann', JOB);
    room.pass(20_000);
    const first = await beat('ann', JOB, 60_000);
    expect(first).toMatchObject({ outcome: 'extended', heartbeats: 1 });
    expect(await beat('ann', JOB, 1)).toMatchObject({
      heartbeats: 2,
      expiresAt: (first as { expiresAt: string }).expiresAt,
    });
    room.pass(59_000);
    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'held' });
    expect(await room.redis.client().pttl('ade:lock:task:t-1')).toBeGreaterThan(50_000);
    const score = Number(await room.redis.client().zscore('ade:lock:registry', 'ade:lock:task:t-1'));
    expect(score * 1000).toBeCloseTo(Date.parse((first as { expiresAt: string }).expiresAt), -1);
  });

  test.each([0, -1, Number.NaN, 1e12])('is clamped when asked for %d ms', async (ms) => {
    const most = ms > 1 ? 900_000 : 1;
    const outcome = await ask('ann', JOB, { leaseMs: ms });
    const [grant] = outcome.outcome === 'granted' ? outcome.grants : [];
    expect(Date.parse(grant?.expiresAt ?? '') - Date.parse(grant?.acquiredAt ?? '')).toBeLessThanOrEqual(most);
    await sweepLate();
    await ask('bob', JOB, { leaseMs: 20_000 });
    const beaten = await beat('bob', JOB, ms);
    const { at, holders } = await room.locks.inspect(parseLock(JOB));
    expect(beaten).toMatchObject({ outcome: 'extended', expiresAt: holders[0]?.expiresAt });
    expect(Date.parse(holders[0]?.expiresAt ?? '') - Date.parse(at)).toBeLessThanOrEqual(Math.max(most, 20_000));
  });

  test('never outlives max_hold, however well it is renewed', async () => {
    await ask('ann', JOB, { maxHoldMs: 45_000 });
    room.pass(20_000);
    await beat('ann', JOB);
    room.pass(20_000);
    await beat('ann', JOB);
    expect(await agents(JOB)).toEqual(['ann']);
    room.pass(5_001);

    expect(await beat('ann', JOB)).toMatchObject({ outcome: 'lost' });
    expect(await ask('bob', JOB, { maxHoldMs: 10_000 })).toMatchObject({ outcome: 'granted' });
    room.pass(10_001);
    expect(await ask('cyd', JOB)).toMatchObject({ outcome: 'granted' });
  });

  test('of the agent class is not revived in its grace when max_hold is over', async () => {
    await ask('ann', JOB, { leaseClass: 'agent', maxHoldMs: 45_000 });
    room.pass(45_001);
    expect((await room.locks.inspect(parseLock(JOB))).holders[0]).toMatchObject({ state: 'grace' });
    expect(await beat('ann', JOB)).toMatchObject({ outcome: 'lost' });
  });

  test('of the agent class is nobody else’s in its grace, and its own beat revives it', async () => {
    await ask('ann', JOB, { leaseClass: 'agent' });
    expect(await room.redis.client().ttl('ade:lock:task:t-1')).toBeGreaterThan(1_000);
    room.pass(900_001);
    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'held' });
    expect((await room.locks.inspect(parseLock(JOB))).holders[0]).toMatchObject({
      state: 'grace',
      leaseClass: 'agent',
    });
    await sweepOnce(room.locks);
    expect(await beat('ann', JOB, 10_000)).toMatchObject({ outcome: 'extended' });
    expect((await room.locks.inspect(parseLock(JOB))).holders[0]).toMatchObject({ state: 'live' });
    room.pass(5_000);
    await beat('ann', JOB);
    room.pass(899_000);
    expect((await room.locks.inspect(parseLock(JOB))).holders[0]).toMatchObject({ state: 'live' });
    room.pass(1_001 + 120_000);
    expect(await beat('ann', JOB)).toMatchObject({ outcome: 'lost' });
    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'granted' });
  });
});

describe('the line', () => {
  test('is first come, first served, also within one microsecond and when the clock steps back', async () => {
    await ask('zoe', JOB);
    const names = ['yan', 'abe', 'max', 'bob'];
    for (const name of names) {
      expect(await ask(name, JOB, WAIT)).toMatchObject({ outcome: 'queued' });
      room.pass(-50);
    }
    expect(await line(JOB)).toEqual(names);
    room.pass(200);
    let holder = 'zoe';
    for (const name of names) {
      await give(holder, JOB);
      const others = (await line(JOB)).slice(1).reverse();
      for (const other of others) expect(await ask(other, JOB, WAIT)).toMatchObject({ outcome: 'queued' });
      expect(await ask(name, JOB, WAIT)).toMatchObject({ outcome: 'granted' });
      holder = name;
    }
  });

  test('stores the seed’s entry and edge, and tells position and expected wait', async () => {
    await ask('zoe', JOB);
    room.pass(4_000);
    await ask('ann', JOB, WAIT);
    await give('zoe', JOB);
    await ask('ann', JOB, WAIT);
    await ask('bob', JOB, { waitMs: 60_000, priority: 7 });
    const third = await ask('cyd', JOB, WAIT);

    expect(third).toMatchObject({
      outcome: 'queued',
      position: 2,
      blocked: { holders: [{ agent: 'ann' }], waiting: 2 },
    });
    const wait = (third as { expectedWaitMs: number }).expectedWaitMs;
    expect(wait).toBeGreaterThan(4_000);
    expect(wait).toBeLessThan(9_000);
    const redis = room.redis.client();
    const [entry, score] = await redis.zrange('ade:lock:task:t-1:queue', '0', '0', 'WITHSCORES');
    expect(JSON.parse(entry as string)).toEqual({
      agent_id: 'bob',
      mode: 'exclusive',
      priority: 7,
      requested_at: expect.any(String),
      max_wait_seconds: 60,
      lock_id: 'bob-1',
    });
    expect(Number(score)).toBeGreaterThan(1.7e12);
    expect(await redis.pttl('ade:lock:task:t-1:queue')).toBe(-1);
    expect(await redis.hget('ade:lock:task:t-1', 'queue_length')).toBe('2');
    expect(await redis.smembers('ade:lock:waitfor:bob')).toEqual(['ade:lock:task:t-1']);
    expect(await redis.ttl('ade:lock:waitfor:bob')).toBeGreaterThan(290);
    expect(await redis.exists('ade:lock:waitfor:ann')).toBe(0);
  });

  test('lets nobody barge in between release and the head’s own call', async () => {
    await ask('zoe', JOB);
    await ask('ann', JOB, WAIT);
    await give('zoe', JOB);

    expect(await ask('bob', JOB)).toMatchObject({ outcome: 'held', blocked: { holders: [], waiting: 1 } });
    expect(await ask('ann', JOB, WAIT)).toMatchObject({ outcome: 'granted' });
    expect(await room.told()).toEqual([
      'acquired task:t-1 zoe',
      'queued task:t-1 ann',
      'released task:t-1 zoe',
      'promoted task:t-1 ann',
      'acquired task:t-1 ann',
    ]);
    expect(
      await room.redis.client().exists('ade:lock:task:t-1:queue', 'ade:lock:task:t-1:waiters', 'ade:lock:waitfor:ann'),
    ).toBe(0);
    expect(await room.redis.client().zcard('ade:lock:index:waiting')).toBe(0);
  });

  test.each([JOB, DB])('recognises a second release although the next one has it: %s', async (lock) => {
    await ask('zoe', lock);
    await ask('ann', lock, WAIT);
    expect(await give('zoe', lock)).toMatchObject([{ outcome: 'released' }]);
    expect(await ask('ann', lock, WAIT)).toMatchObject({ outcome: 'granted' });

    expect(await give('zoe', lock)).toMatchObject([{ outcome: 'already' }]);
    expect(await ask('zoe', lock)).toMatchObject({ outcome: 'spent' });
    expect(await give('ann', lock)).toMatchObject([{ outcome: 'released' }]);
    expect(await ask('zoe', lock)).toMatchObject({ outcome: 'spent' });
  });

  test('passes over a thousand waiters that died, at once', async () => {
    room.limits = { ...room.limits, depth: 2_000 };
    await ask('zoe', JOB);
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => ask(`dead-${n}`, JOB, WAIT)));
    room.pass(9_000);
    await beat('zoe', JOB);
    await ask('ann', JOB, WAIT);
    room.pass(1_500);
    await give('zoe', JOB);

    expect(await ask('ann', JOB, WAIT)).toMatchObject({ outcome: 'granted' });
    expect(await line(JOB)).toEqual([]);
    await sweepLate();
    expect(await room.redis.client().keys('ade:lock:waitfor:*')).toHaveLength(1_000);
  });

  test('tells a waiter that fell silent too long that its place is gone', async () => {
    await ask('zoe', JOB, { leaseMs: 100_000 });
    await ask('ann', JOB, WAIT);
    room.pass(10_001);
    await ask('bob', JOB, WAIT);

    expect(await ask('ann', JOB, { ...WAIT, queued: true })).toMatchObject({ outcome: 'evicted' });
    expect(await ask('ann', JOB, WAIT)).toMatchObject({ outcome: 'queued', position: 2 });
  });

  test('keeps the place of a waiter that was late while nobody else looked', async () => {
    await ask('zoe', JOB, { leaseMs: 100_000 });
    await ask('ann', JOB, WAIT);
    room.pass(10_001);

    expect(await ask('ann', JOB, { ...WAIT, queued: true })).toMatchObject({ outcome: 'queued', position: 1 });
  });

  test('gives the lock to a head that was late, also before those who wait behind it, if nobody looked meanwhile', async () => {
    await ask('zoe', JOB);
    await ask('ann', JOB, WAIT);
    room.pass(6_000);
    await ask('bob', JOB, WAIT);
    await give('zoe', JOB);
    room.pass(4_001);
    expect(await ask('ann', JOB, { ...WAIT, queued: true })).toMatchObject({ outcome: 'granted' });
    expect(await line(JOB)).toEqual(['bob']);
  });

  test('keeps an agent-class waiter for a minute without a word', async () => {
    await ask('zoe', JOB, { leaseMs: 100_000 });
    await ask('ann', JOB, { ...WAIT, leaseClass: 'agent' });
    room.pass(50_000);
    await ask('bob', JOB, WAIT);
    expect(await line(JOB)).toEqual(['ann', 'bob']);
  });

  test('has an end: beyond it the queue is full, but not for those who stand in it', async () => {
    room.limits = { ...room.limits, depth: 2 };
    await ask('zoe', JOB);
    await ask('ann', JOB, WAIT);
    await ask('bob', JOB, WAIT);

    expect(await ask('cyd', JOB, WAIT)).toMatchObject({ outcome: 'full', depth: 2 });
    expect(await ask('bob', JOB, WAIT)).toMatchObject({ outcome: 'queued', position: 2 });
    expect(await room.redis.client().exists('ade:lock:waitfor:cyd')).toBe(0);
  });

  test('calls the next when the one before it gives up', async () => {
    await ask('zoe', DB);
    await ask('ann', DB, WAIT);
    await ask('bob', READ_DB, WAIT);
    await give('zoe', DB);
    await room.locks.cancelWait(held('ann', DB));

    expect((await room.told()).at(-1)).toBe('promoted resource:database:prod-db-01 bob');
    expect(await ask('bob', READ_DB, WAIT)).toMatchObject({ outcome: 'granted' });
    expect(await room.locks.cancelWait(held('ann', DB))).toBe(false);
    expect(await room.redis.client().exists('ade:lock:waitfor:ann')).toBe(0);
  });

  test('does not hold a waiter’s own place against it when it asks without waiting', async () => {
    await ask('zoe', JOB);
    await ask('ann', JOB, WAIT);
    await give('zoe', JOB);

    expect(await ask('ann', JOB)).toMatchObject({ outcome: 'granted' });
  });
});

describe('a waiter that is taken out', () => {
  const cycle = [{ agent: 'ann', waits: JOB }];

  test('is told the cycle on its next call, and may come back as old as it was', async () => {
    await ask('zoe', JOB);
    const queued = await ask('ann', JOB, WAIT);
    await ask('bob', JOB, WAIT);
    const since = (queued as { since: number }).since;

    const aborted = { lock: parseLock(JOB), agent: 'ann', lockId: 'ann-1', since, cycle };
    expect(await room.locks.abortWaiter(aborted)).toBe(since);
    expect(await room.locks.abortWaiter(aborted)).toBeUndefined();
    expect(await ask('ann', JOB, { ...WAIT, queued: true })).toMatchObject({ outcome: 'deadlock', cycle, since });
    expect(await ask('ann', JOB, { ...WAIT, since })).toMatchObject({ outcome: 'queued', position: 1 });
    expect(await line(JOB)).toEqual(['ann', 'bob']);
    await give('zoe', JOB);
    expect(await ask('bob', JOB, WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await ask('ann', JOB, WAIT)).toMatchObject({ outcome: 'granted' });
  });

  test('goes before those who came after it, also when the lock is free and they are in line', async () => {
    await ask('zoe', JOB);
    const { since } = (await ask('ann', JOB, WAIT)) as { since: number };
    await ask('bob', JOB, WAIT);
    await room.locks.cancelWait(held('ann', JOB));
    await give('zoe', JOB);

    expect(await ask('cyd', JOB, WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await ask('ann', JOB, { ...WAIT, since })).toMatchObject({ outcome: 'granted' });
  });

  test('is left alone if it has begun to wait anew', async () => {
    await ask('zoe', JOB);
    const queued = await ask('ann', JOB, WAIT);
    const since = (queued as { since: number }).since;
    await room.locks.cancelWait(held('ann', JOB));
    await ask('ann', JOB, WAIT);

    expect(
      await room.locks.abortWaiter({ lock: parseLock(JOB), agent: 'ann', lockId: 'ann-1', since, cycle }),
    ).toBeUndefined();
    expect(await line(JOB)).toEqual(['ann']);
  });

  test('frees the way for those behind it, and the word for it is not kept for ever', async () => {
    await ask('zoe', READ_DB, { leaseMs: 100_000 });
    const queued = await ask('ann', DB, WAIT);
    await ask('bob', READ_DB, WAIT);
    const { since } = queued as { since: number };
    await room.locks.abortWaiter({ lock: parseLock(DB), agent: 'ann', lockId: 'ann-1', since, cycle });

    expect((await room.told()).at(-1)).toBe('promoted resource:database:prod-db-01 bob');
    expect(await ask('bob', READ_DB, { ...WAIT, leaseMs: 100_000 })).toMatchObject({ outcome: 'granted' });
    const waiters = 'ade:lock:resource:database:prod-db-01:waiters';
    expect(await room.redis.client().exists(waiters)).toBe(1);
    room.pass(60_001);
    await sweepOnce(room.locks);
    expect(await room.redis.client().exists(waiters)).toBe(0);
    expect(await room.redis.client().zcard('ade:lock:index:waiting')).toBe(0);
  });
});

test('the word for a victim that never asks again is swept, also where nobody else waited', async () => {
  await ask('zoe', JOB, { leaseMs: 800_000 });
  const { since } = (await ask('ann', JOB, WAIT)) as { since: number };
  await room.locks.abortWaiter({ lock: parseLock(JOB), agent: 'ann', lockId: 'ann-1', since, cycle: [] });
  expect(await room.redis.client().exists('ade:lock:task:t-1:waiters')).toBe(1);
  room.pass(60_001);
  await sweepOnce(room.locks);
  expect(await room.redis.client().exists('ade:lock:task:t-1:waiters', 'ade:lock:index:waiting')).toBe(0);
});

describe('a resource lock', () => {
  test('is stored with mode and holder, and in the index of its type', async () => {
    const token = tokenOf(await ask('ann', DB));
    const redis = room.redis.client();
    expect(await redis.hgetall('ade:lock:resource:database:prod-db-01')).toMatchObject({
      mode: 'exclusive',
      exclusive_holder: 'ann',
      lock_id: 'ann-1',
      fencing_token: String(token),
    });
    expect(await redis.smembers('ade:lock:index:resource:database')).toEqual(['ade:lock:resource:database:prod-db-01']);
    await give('ann', DB);
    expect(await redis.exists('ade:lock:index:resource:database')).toBe(0);
  });

  test('is shared by readers, each with its own entry, token and end', async () => {
    const first = tokenOf(await ask('ann', READ_DB));
    room.pass(10_000);
    const second = tokenOf(await ask('bob', READ_DB));
    expect(second).toBeGreaterThan(first);
    const hash = await room.redis.client().hgetall('ade:lock:resource:database:prod-db-01');
    expect(hash.mode).toBe('shared');
    expect(JSON.parse(hash.holders as string)).toMatchObject([
      { agent_id: 'ann', lock_id: 'ann-1', fencing_token: String(first) },
      { agent_id: 'bob', lock_id: 'bob-1', fencing_token: String(second) },
    ]);
    await beat('bob', READ_DB);
    room.pass(20_001);
    expect(await ask('cyd', DB)).toMatchObject({ outcome: 'held', blocked: { holders: [{ agent: 'bob' }] } });
    expect(await agents(DB)).toEqual(['bob']);
    expect(await room.redis.client().exists('ade:lock:index:agent:ann')).toBe(0);
    expect(await room.told()).toContain('expired resource:database:prod-db-01 ann');
  });

  test.each([DB, READ_DB])('has tokens that rise, also when the clock steps back: %s', async (lock) => {
    const first = tokenOf(await ask('ann', lock));
    await give('ann', DB);
    room.pass(-10_000);
    expect(tokenOf(await ask('bob', lock))).toBeGreaterThan(first);
  });

  test('is not granted anew to a reader that asks again after its lease, while others read on', async () => {
    await ask('ann', READ_DB);
    room.pass(20_000);
    await ask('bob', READ_DB);
    room.pass(15_000);
    expect(await ask('ann', READ_DB)).toMatchObject({ outcome: 'spent' });
  });

  test('ends as a whole with its last reader', async () => {
    await ask('ann', READ_DB);
    await ask('bob', READ_DB);
    await give('ann', DB);
    expect(await give('ann', DB)).toMatchObject([{ outcome: 'already' }]);
    expect(await ask('ann', READ_DB)).toMatchObject({ outcome: 'spent' });
    expect(await agents(DB)).toEqual(['bob']);
    await give('bob', DB);
    expect(await room.redis.client().exists('ade:lock:resource:database:prod-db-01')).toBe(0);
    expect(await ask('ann', DB)).toMatchObject({ outcome: 'spent' });
    expect(await complaints(room, true)).toEqual([]);
  });

  test('keeps an agent’s index entry while another grant of that agent lasts', async () => {
    await ask('ann', READ_DB, { lockId: 'one' });
    await ask('ann', READ_DB, { lockId: 'two' });
    await give('ann', DB, 'one');
    expect(await room.redis.client().scard('ade:lock:index:agent:ann')).toBe(1);
    await give('ann', DB, 'two');
    expect(await room.redis.client().scard('ade:lock:index:agent:ann')).toBe(0);
  });

  test('does not let readers starve a writer', async () => {
    await ask('ann', READ_DB);
    expect(await ask('wim', DB, WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await ask('bob', READ_DB)).toMatchObject({ outcome: 'held' });
    expect(await ask('bob', READ_DB, WAIT)).toMatchObject({ outcome: 'queued', position: 2 });
    await give('ann', DB);
    expect(await ask('bob', READ_DB, WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await ask('wim', DB, WAIT)).toMatchObject({ outcome: 'granted' });
  });

  test('calls all the readers at the head together, and no writer beside them', async () => {
    await ask('wim', DB);
    for (const reader of ['ann', 'bob']) await ask(reader, READ_DB, WAIT);
    await ask('wes', DB, WAIT);
    await ask('cyd', READ_DB, WAIT);
    await give('wim', DB);

    const called = (await room.told())
      .filter((word) => word.startsWith('promoted'))
      .map((word) => word.split(' ').at(-1));
    expect(called).toEqual(['ann', 'bob']);
    expect(await ask('bob', READ_DB, WAIT)).toMatchObject({ outcome: 'granted' });
    expect(await ask('ann', READ_DB, WAIT)).toMatchObject({ outcome: 'granted' });
    expect(await ask('cyd', READ_DB, WAIT)).toMatchObject({ outcome: 'queued' });
  });

  test('is upgraded only for its sole reader, while nobody waits', async () => {
    const first = tokenOf(await ask('ann', READ_DB));
    await ask('bob', READ_DB);
    expect(await ask('ann', DB)).toMatchObject({ outcome: 'refused', why: 'upgrade' });
    expect(await ask('bob', DB, WAIT)).toMatchObject({ outcome: 'refused', why: 'upgrade' });
    await give('bob', DB);
    await ask('wim', DB, WAIT);
    expect(await ask('ann', DB)).toMatchObject({ outcome: 'refused', why: 'upgrade' });
    await room.locks.cancelWait(held('wim', DB));
    expect(tokenOf(await ask('ann', DB))).toBeGreaterThan(first);
    expect(await room.redis.client().hgetall('ade:lock:resource:database:prod-db-01')).toMatchObject({
      mode: 'exclusive',
    });
    expect(await ask('cyd', READ_DB)).toMatchObject({ outcome: 'held' });
  });

  test('held alone also answers its holder’s wish to read', async () => {
    const token = tokenOf(await ask('ann', DB));
    const again = await ask('ann', READ_DB);
    expect(again).toMatchObject({ outcome: 'granted', again: true });
    expect(tokenOf(again)).toBe(token);
  });

  test('takes ids that are paths, and keeps look-alikes apart', async () => {
    await ask('ann', 'resource:file:src/a.ts');
    expect(await room.redis.client().exists('ade:lock:resource:file:src%2Fa.ts')).toBe(1);
    expect(await ask('bob', 'resource:file:src%2Fa.ts')).toMatchObject({ outcome: 'held' });
    expect(await ask('bob', 'resource:file:src:a.ts')).toMatchObject({ outcome: 'granted' });
  });
});

describe('several at once', () => {
  const FIVE = ['resource:db:1', 'resource:db:2', 'resource:db:3+shared', 'resource:db:4', JOB];

  test('are taken in one step, under one lock_id, each with its token', async () => {
    const outcome = await ask('ann', FIVE);
    expect(outcome).toMatchObject({ outcome: 'granted' });
    if (outcome.outcome !== 'granted') return;
    expect(outcome.grants.map(({ lock }) => lock.kind)).toEqual([
      'resource',
      'resource',
      'resource',
      'resource',
      'task',
    ]);
    expect(await room.redis.client().scard('ade:lock:index:agent:ann')).toBe(5);
    expect(await beat('ann', FIVE)).toMatchObject({ outcome: 'extended' });
    expect((await give('ann', FIVE)).map((each) => each.outcome)).toEqual(Array(5).fill('released'));
    expect(await complaints(room, true)).toEqual([]);
  });

  test('leave nothing held when one of five is not to be had', async () => {
    await ask('bob', 'resource:db:4');
    expect(await ask('ann', FIVE)).toMatchObject({ outcome: 'held', blocked: { lock: parseLock('resource:db:4') } });
    expect(await room.redis.client().exists('ade:lock:index:agent:ann')).toBe(0);
    expect(await ask('cyd', 'resource:db:1')).toMatchObject({ outcome: 'granted' });
  });

  test('are all renewed or none', async () => {
    await ask('ann', ['resource:db:1', JOB]);
    await room.redis.client().del('ade:lock:task:t-1');
    const before = await room.redis.client().hgetall('ade:lock:resource:db:1');
    expect(await beat('ann', ['resource:db:1', JOB])).toMatchObject({ outcome: 'lost', lock: parseLock(JOB) });
    expect(await room.redis.client().hgetall('ade:lock:resource:db:1')).toEqual(before);
    await sweepLate();
  });

  test('wait where they must, keep their age in every line, and never wait in a circle', async () => {
    await ask('hal', 'resource:db:1');
    expect(await ask('ann', ['resource:db:1', 'resource:db:2'], WAIT)).toMatchObject({ outcome: 'queued' });
    await ask('hob', 'resource:db:2');
    expect(await ask('bob', ['resource:db:1', 'resource:db:2'], WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await line('resource:db:2')).toEqual(['bob']);
    await give('hal', 'resource:db:1');
    expect(await ask('ann', ['resource:db:1', 'resource:db:2'], WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await line('resource:db:2')).toEqual(['ann', 'bob']);
    await give('hob', 'resource:db:2');
    expect(await ask('bob', ['resource:db:1', 'resource:db:2'], WAIT)).toMatchObject({ outcome: 'queued' });
    expect(await ask('ann', ['resource:db:1', 'resource:db:2'], WAIT)).toMatchObject({ outcome: 'granted' });
    await give('ann', ['resource:db:1', 'resource:db:2']);
    expect(await ask('bob', ['resource:db:1', 'resource:db:2'], WAIT)).toMatchObject({ outcome: 'granted' });
    expect(await room.redis.client().keys('ade:lock:*:queue')).toEqual([]);
  });
});

describe('capacity', () => {
  const ANN = 'agent:ann';
  const place = (lockId: string, more = {}) => ask('ann', ANN, { lockId, ...more });

  test('is counted in leases and written to the seed’s fields', async () => {
    expect(await place('one')).toMatchObject({ outcome: 'refused', why: 'unregistered' });
    await room.locks.setCapacity('ann', { maxTasks: 2 });
    const first = tokenOf(await place('one'));
    expect(await place('two')).toMatchObject({ outcome: 'granted' });
    expect(tokenOf(await place('one'))).toBe(first);
    expect(await place('three')).toMatchObject({ outcome: 'held' });
    expect(await room.redis.client().hgetall('ade:lock:agent:ann:capacity')).toEqual({
      max_tasks: '2',
      active_tasks: '2',
      queued_tasks: '0',
      last_heartbeat: expect.stringMatching(/Z$/),
      status: 'active',
    });
    expect(await give('ann', ANN, 'one')).toMatchObject([{ outcome: 'released' }]);
    expect(await give('ann', ANN, 'one')).toMatchObject([{ outcome: 'already' }]);
    expect(await place('one')).toMatchObject({ outcome: 'spent' });
    expect(await place('three')).toMatchObject({ outcome: 'granted' });
    expect((await room.locks.capacity('ann'))?.activeTasks).toBe(2);
  });

  test('comes back when an agent dies with three tasks', async () => {
    await room.locks.setCapacity('ann', { maxTasks: 3 });
    for (const lockId of ['one', 'two', 'three']) await place(lockId);
    room.pass(20_000);
    await beat('ann', ANN, 30_000, 'three');
    room.pass(10_001);
    expect((await room.locks.capacity('ann'))?.activeTasks).toBe(1);
    expect(await sweepOnce(room.locks)).toMatchObject({ expired: 2 });
    expect(await room.redis.client().hget('ade:lock:agent:ann:capacity', 'active_tasks')).toBe('1');
    expect(await beat('ann', ANN, 30_000, 'one')).toMatchObject({ outcome: 'lost' });
    room.pass(30_001);
    expect(await sweepOnce(room.locks)).toMatchObject({ expired: 1 });
    expect(await room.redis.client().zcard('ade:lock:registry')).toBe(0);
  });

  test('lowered below what is active evicts nobody and grants nothing new', async () => {
    await room.locks.setCapacity('ann', { maxTasks: 2 });
    await place('one');
    await place('two');
    expect(await room.locks.setCapacity('ann', { maxTasks: 1 })).toMatchObject({ maxTasks: 1, activeTasks: 2 });
    await give('ann', ANN, 'one');
    expect(await place('three')).toMatchObject({ outcome: 'held' });
    expect(await beat('ann', ANN, 30_000, 'two')).toMatchObject({ outcome: 'extended' });
  });

  test.each(['draining', 'offline'] as const)('of an agent that is %s is refused', async (status) => {
    await room.locks.setCapacity('ann', { maxTasks: 2 });
    await place('one');
    await room.locks.setCapacity('ann', { status });
    expect(await place('two')).toMatchObject({ outcome: 'refused', why: status });
    expect(await place('one')).toMatchObject({ outcome: 'granted', again: true });
    expect(await room.locks.setCapacity('bob', { status })).toBeUndefined();
  });

  test('is waited for in line and handed on', async () => {
    await room.locks.setCapacity('ann', { maxTasks: 1 });
    await place('one');
    expect(await place('two', WAIT)).toMatchObject({ outcome: 'queued', position: 1 });
    expect((await room.locks.capacity('ann'))?.queuedTasks).toBe(1);
    await give('ann', ANN, 'one');
    expect(await place('three')).toMatchObject({ outcome: 'held' });
    expect(await place('two', WAIT)).toMatchObject({ outcome: 'granted' });
    expect((await room.locks.capacity('ann'))?.queuedTasks).toBe(0);
  });

  test('is part of all or nothing', async () => {
    await room.locks.setCapacity('ann', { maxTasks: 1 });
    await ask('bob', JOB);
    expect(await ask('ann', [ANN, JOB])).toMatchObject({ outcome: 'held' });
    expect((await room.locks.capacity('ann'))?.activeTasks).toBe(0);
    await give('bob', JOB);
    expect(await ask('ann', [ANN, JOB], { lockId: 'x' })).toMatchObject({ outcome: 'granted' });
    expect((await room.locks.capacity('ann'))?.activeTasks).toBe(1);
    await give('ann', [ANN, JOB], 'x');
    expect((await room.locks.capacity('ann'))?.activeTasks).toBe(0);
  });

  test('goes with its agent', async () => {
    await room.locks.setCapacity('ann', { maxTasks: 1 });
    await place('one');
    expect(await room.locks.removeCapacity('ann')).toBe(true);
    expect(await room.redis.client().keys('ade:lock:*')).toEqual([]);
  });
});

describe('looking', () => {
  test('lists what is held, by agent and by type of resource, a page at a time', async () => {
    for (let n = 0; n < 25; n++) await ask('ann', `task:n-${n}`);
    await ask('bob', DB);
    const names: string[] = [];
    let cursor: string | undefined = '0';
    while (cursor !== undefined) {
      const page: Awaited<ReturnType<typeof room.locks.list>> = await room.locks.list({ cursor, limit: 5 });
      names.push(...page.locks.map(({ name }) => name));
      cursor = page.cursor;
    }
    expect(new Set(names).size).toBe(26);
    expect((await room.locks.list({ agent: 'bob' })).locks).toMatchObject([{ name: 'resource:database:prod-db-01' }]);
    expect((await room.locks.list({ type: 'database' })).locks).toMatchObject([{ holders: [{ agent: 'bob' }] }]);
  });

  test('gives the locks that are waited for, with holders and waiters in order', async () => {
    await ask('ann', JOB);
    await ask('bob', DB);
    await ask('cyd', DB, WAIT);
    expect(await room.locks.waitGraph()).toMatchObject([
      { name: 'resource:database:prod-db-01', holders: [{ agent: 'bob' }], waiters: [{ agent: 'cyd', alive: true }] },
    ]);
    expect(await room.locks.waitsFor('cyd')).toEqual([parseLock(DB)]);
  });
});

test('an agent that may not ask so often is told when to come back', async () => {
  const { Locks } = await import('../../../src/coordinator/locks/locks.ts');
  const left = { bob: 1 };
  const limited = new Locks({
    connection: room.connection,
    keyspace: { mode: 'standalone' },
    scripts: room.scripts,
    events: room.events,
    limits: () => room.limits,
    admit: async () => (left.bob-- > 0 ? 0 : 1_500),
  });
  expect(await asks(limited)('bob', JOB)).toMatchObject({ outcome: 'granted' });
  expect(await asks(limited)('bob', DB)).toEqual({ outcome: 'limited', retryAfterMs: 1_500 });
});

/** Ends what a test left behind on purpose. */
async function sweepLate(): Promise<void> {
  room.pass(3_600_000);
  await sweepOnce(room.locks);
}
