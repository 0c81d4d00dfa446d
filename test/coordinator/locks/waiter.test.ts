import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/clock.ts';
import { LockChannels } from '../../../src/coordinator/locks/channels.ts';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { type AcquireRequest, Locks } from '../../../src/coordinator/locks/locks.ts';
import { Waiter } from '../../../src/coordinator/locks/waiter.ts';
import { ReeveError } from '../../../src/errors.ts';
import { until } from '../../support/until.ts';
import { complaints } from './invariants.ts';
import { aLockRoom, asks, held, type LockRoom, wanted } from './room.ts';

let room: LockRoom;
let ask: ReturnType<typeof asks>;
let channels: LockChannels;
/** The locks as another daemon has them: nobody there knows who waits here. */
let elsewhere: Locks;
beforeAll(async () => {
  room = await aLockRoom();
  const { connection, scripts, events } = room;
  elsewhere = new Locks({ connection, scripts, events, keyspace: { mode: 'standalone' }, limits: () => room.limits });
  ask = asks(room.locks);
  channels = new LockChannels(room.connection);
});
beforeEach(() => room.reset());
afterAll(() => room.stop());

const JOB = 'task:t-1';
const WAIT_MS = 20_000;

/** The system's clock, but pauses end only when the test says so, or by a call. */
function patientClock() {
  const sleeping = new Set<() => void>();
  const clock: Clock = {
    now: () => systemClock.now(),
    sleep: (_ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = () => {
          sleeping.delete(done);
          resolve();
        };
        sleeping.add(done);
        signal?.addEventListener('abort', done, { once: true });
      }),
  };
  const wake = () => {
    for (const done of [...sleeping]) done();
  };
  return { clock, sleeping, wake };
}

const waiting = (
  agent: string,
  lock: string | readonly string[],
  clock: Clock,
  more: Partial<AcquireRequest> = {},
  signal?: AbortSignal,
) =>
  new Waiter({ locks: room.locks, channels, clock }).acquire(
    { agent, lockId: `${agent}-1`, locks: wanted(lock), waitMs: WAIT_MS, ...more },
    signal,
  );
const inLine = async (count: number) =>
  until('the line', async () => (await room.locks.inspect(parseLock(JOB))).waiters.length === count);

test('gets the lock by the call of one who gives it back elsewhere, without asking in between', async () => {
  await ask('ann', JOB);
  const { clock, sleeping } = patientClock();
  const got = waiting('bob', JOB, clock);
  await until('bob pauses', () => sleeping.size === 1);

  await elsewhere.release(held('ann', JOB));

  expect(await got).toMatchObject({ outcome: 'granted' });
});

const callsOfScripts = async () => {
  const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await room.connection.commands.info('commandstats')) ?? [];
  return Number(calls);
};

test('gets the lock in the very call of one who gives it back here', async () => {
  await ask('ann', JOB);
  const { clock, sleeping } = patientClock();
  const got = waiting('bob', JOB, clock, { purpose: 'mine', leaseMs: 50_000 });
  const later = waiting('cyd', JOB, clock);
  await until('both pause', () => sleeping.size === 2);
  await room.connection.commands.config('RESETSTAT');

  expect(await room.locks.release(held('ann', JOB))).toMatchObject([{ outcome: 'released' }]);

  expect(await got).toMatchObject({ outcome: 'granted', lockId: 'bob-1', again: false, grants: [{ agent: 'bob' }] });
  expect(await callsOfScripts()).toBe(1);
  const { holders, waiters, token } = await room.locks.inspect(parseLock(JOB));
  expect(holders).toMatchObject([{ agent: 'bob', purpose: 'mine', token, state: 'live' }]);
  expect(waiters).toMatchObject([{ agent: 'cyd' }]);
  expect((await room.told()).slice(-3)).toEqual([`released ${JOB} ann`, `promoted ${JOB} bob`, `acquired ${JOB} bob`]);
  expect(await complaints(room)).toEqual([]);
  expect(await room.connection.commands.smembers(room.keys.waitFor('bob'))).toEqual([]);
  await room.locks.release(held('bob', JOB));
  expect(await later).toMatchObject({ outcome: 'granted' });
  expect(await room.connection.commands.exists(room.keys.waitedLocks())).toBe(0);
});

test('does not get the lock from its neighbour while somebody elsewhere is before it', async () => {
  await ask('ann', JOB);
  await asks(elsewhere)('eve', JOB, { waitMs: WAIT_MS });
  const { clock, sleeping } = patientClock();
  const got = waiting('bob', JOB, clock);
  await until('bob pauses', () => sleeping.size === 1);
  await room.connection.commands.config('RESETSTAT');
  await room.locks.release(held('ann', JOB));
  expect(await callsOfScripts()).toBe(1);

  expect(await asks(elsewhere)('eve', JOB, { waitMs: WAIT_MS, queued: true })).toMatchObject({ outcome: 'granted' });
  await elsewhere.release(held('eve', JOB));
  expect(await got).toMatchObject({ outcome: 'granted' });
});

test('keeps what it was handed although it was told to stop at that moment', async () => {
  await ask('ann', JOB);
  const { clock, sleeping } = patientClock();
  const stop = new AbortController();
  const got = waiting('bob', JOB, clock, {}, stop.signal);
  await until('bob pauses', () => sleeping.size === 1);
  const released = room.locks.release(held('ann', JOB));
  stop.abort(new Error('enough'));

  expect(await got).toMatchObject({ outcome: 'granted' });
  await released;
  expect((await room.locks.inspect(parseLock(JOB))).holders).toMatchObject([{ agent: 'bob' }]);
});

test('asks for itself when the answer to the one who asked for it was lost', async () => {
  const { connection, scripts, events } = room;
  const losing: typeof scripts = {
    run: async (script, ...rest) => {
      const reply = await scripts.run(script, ...rest);
      if (script.name === 'release.lua' && lose-- > 0) throw new ReeveError('REDIS_REPLY_UNKNOWN', { address: 'test' });
      return reply;
    },
  };
  let lose = 2;
  const locks = new Locks({
    connection,
    scripts: losing,
    events,
    keyspace: { mode: 'standalone' },
    limits: () => room.limits,
  });
  await asks(locks)('ann', JOB);
  const { clock, sleeping } = patientClock();
  const got = new Waiter({ locks, channels, clock }).acquire({ agent: 'bob', locks: wanted(JOB), waitMs: WAIT_MS });
  await until('bob pauses', () => sleeping.size === 1);

  await expect(locks.release(held('ann', JOB))).rejects.toMatchObject({ code: 'REDIS_REPLY_UNKNOWN' });

  expect(await got).toMatchObject({ outcome: 'granted', again: true });
});

test('hands over among five hundred with one call to each', async () => {
  room.limits = { ...room.limits, depth: 1_000 };
  await ask('first', JOB);
  const { clock, sleeping } = patientClock();
  const order: number[] = [];
  const all = Array.from({ length: 500 }, async (_, n) => {
    const outcome = await waiting(`a-${n}`, JOB, clock);
    expect(outcome).toMatchObject({ outcome: 'granted' });
    order.push(n);
    await room.locks.release(held(`a-${n}`, JOB));
  });
  await until('all wait', () => sleeping.size === 500, 20_000);
  await room.connection.commands.config('RESETSTAT');
  await room.locks.release(held('first', JOB));
  await Promise.all(all);

  expect(order).toEqual(Array.from({ length: 500 }, (_, n) => n));
  expect(await callsOfScripts()).toBeLessThan(500 * 2 + 20);
}, 60_000);

test('gets the lock although the call was missed', async () => {
  await ask('ann', JOB);
  const { clock, sleeping, wake } = patientClock();
  const got = waiting('bob', JOB, clock);
  await until('bob pauses', () => sleeping.size === 1);
  await room.connection.subscriber.unsubscribe();
  await elsewhere.release(held('ann', JOB));
  wake();
  expect(await got).toMatchObject({ outcome: 'granted' });
  channels = new LockChannels(room.connection);
});

test('is not fooled by a forged call', async () => {
  await ask('ann', JOB);
  const { clock, sleeping } = patientClock();
  const got = waiting('bob', JOB, clock);
  await until('bob pauses', () => sleeping.size === 1);
  await room.redis.client().publish('ade:lock:task:t-1:channel', 'promoted:bob');
  await until('bob asked and pauses again', () => sleeping.size === 1);
  expect((await room.locks.inspect(parseLock(JOB))).holders).toMatchObject([{ agent: 'ann' }]);
  await elsewhere.release(held('ann', JOB));
  expect(await got).toMatchObject({ outcome: 'granted' });
});

test('leaves the line when it is told to stop, and when its time is over', async () => {
  await ask('ann', JOB);
  const stop = new AbortController();
  const got = waiting('bob', JOB, systemClock, {}, stop.signal);
  await inLine(1);
  stop.abort(new Error('enough'));
  await expect(got).rejects.toThrow('enough');
  expect(await waiting('cyd', JOB, systemClock, { waitMs: 30 })).toMatchObject({ outcome: 'held' });
  await inLine(0);
});

test('joins the end of the line when it was held up too long', async () => {
  await ask('ann', JOB, { leaseMs: 800_000 });
  const { clock, sleeping, wake } = patientClock();
  const got = waiting('bob', JOB, clock);
  await until('bob pauses', () => sleeping.size === 1);
  room.pass(10_001);
  await ask('cyd', JOB, { waitMs: 60_000 });
  wake();
  await inLine(2);
  expect((await room.locks.inspect(parseLock(JOB))).waiters.map(({ agent }) => agent)).toEqual(['cyd', 'bob']);
  await room.locks.cancelWait(held('cyd', JOB));
  await room.locks.release(held('ann', JOB));
  expect(await got).toMatchObject({ outcome: 'granted' });
});

test('steps back as the victim of a deadlock and returns as old as it was, also after many rounds', async () => {
  await ask('ann', JOB);
  const got = waiting('bob', JOB, systemClock);
  await inLine(1);
  await ask('cyd', JOB, { waitMs: 60_000 });
  for (let round = 0; round < 3; round++) {
    const bob = await until('bob waits', async () => {
      const { waiters } = await room.locks.inspect(parseLock(JOB));
      return waiters.find(({ agent }) => agent === 'bob');
    });
    await room.locks.abortWaiter({ lock: parseLock(JOB), agent: 'bob', lockId: 'bob-1', since: bob.since, cycle: [] });
    await room.redis.client().publish('ade:lock:task:t-1:channel', 'promoted:bob');
  }
  await inLine(2);
  expect((await room.locks.inspect(parseLock(JOB))).waiters.map(({ agent }) => agent)).toEqual(['bob', 'cyd']);
  await room.locks.release(held('ann', JOB));
  expect(await got).toMatchObject({ outcome: 'granted' });
});
