import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { ReeveError } from '../../../src/errors.ts';
import { everything } from '../../support/everything.ts';
import { type RedisProcess, runRedis } from '../../support/redis-process.ts';
import { until } from '../../support/until.ts';
import { complaints, mustBeSound } from './invariants.ts';
import { asks, held, lockRoomOn, type OpenRoom } from './room.ts';

const [JOB, DB, OTHER] = ['task:t-1', 'resource:db:main', 'task:t-2'];
const SHORT_MS = 50;

let server: RedisProcess;
let room: OpenRoom;
let ask: ReturnType<typeof asks>;
let plain: Redis;
beforeAll(async () => {
  // Nothing is kept over a restart; scripts count as stuck at once; loading takes its time.
  server = await runRedis({
    'busy-reply-threshold': SHORT_MS,
    'key-load-delay': 300,
    'loading-process-events-interval-bytes': 1_024,
  });
  const options = { host: '127.0.0.1', port: server.port };
  room = await lockRoomOn({ kind: 'standalone', address: 'test', options });
  ask = asks(room.locks);
  plain = new Redis(options);
  plain.on('error', () => {});
});
afterAll(async () => {
  plain.disconnect();
  await room.connection.stop();
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  room.time.shiftMs = 0;
  await plain.flushall();
});
afterEach(() => mustBeSound(room));

/** Every verb about a lock that ann holds, bob waits for, and whose like is free. */
const VERBS: readonly [string, () => Promise<unknown>][] = [
  ['a free lock is not granted', () => ask('cyd', OTHER)],
  ['several are not granted', () => ask('cyd', [OTHER, 'resource:db:other'])],
  ['nobody joins the line', () => ask('cyd', JOB, { waitMs: 10_000 })],
  ['a shared lock is not granted', () => ask('cyd', `${DB}+shared`)],
  ['nothing is renewed', () => room.locks.heartbeat(held('ann', JOB))],
  ['nothing is given back', () => room.locks.release(held('ann', [JOB, DB]))],
  ['nobody leaves the line', () => room.locks.cancelWait(held('bob', JOB))],
  ['nothing is swept', () => room.locks.reap(held('ann', JOB).locks[0]!)],
  ['no capacity is set', () => room.locks.setCapacity('ann', { maxTasks: 2 })],
];

async function aScene(): Promise<void> {
  await ask('ann', [JOB, `${DB}+shared`]);
  await ask('bob', JOB, { waitMs: 60_000 });
}

describe.each([
  {
    trouble: 'OOM',
    begin: () => plain.config('SET', 'maxmemory', '1'),
    end: () => plain.config('SET', 'maxmemory', '0'),
  },
  {
    trouble: 'READONLY',
    begin: () => plain.replicaof('127.0.0.1', 1),
    end: () => plain.replicaof('NO', 'ONE'),
  },
])('on a server that answers $trouble', ({ trouble, begin, end }) => {
  test.each(VERBS)('%s, nothing is half written, and the error is a typed one', async (_, verb) => {
    await aScene();
    const before = await everything(plain);
    await begin();
    try {
      await expect(verb()).rejects.toMatchObject({
        code: 'REDIS_UNAVAILABLE',
        message: expect.stringContaining(trouble),
      });
      expect(await everything(plain)).toEqual(before);
    } finally {
      await end();
    }
    expect(await ask('ann', [JOB, `${DB}+shared`])).toMatchObject({ outcome: 'granted', again: true });
  });
});

test('on a server that is BUSY with a script nothing is granted, and everything goes on afterwards', async () => {
  await aScene();
  const stuck = new Redis({ host: '127.0.0.1', port: server.port });
  const loop = stuck.eval('while true do end', 0).catch((error: Error) => error.message);
  await until('it is busy', () =>
    plain.ping().then(
      () => false,
      (error: Error) => error.message.startsWith('BUSY'),
    ),
  );
  const failure = { code: 'REDIS_UNAVAILABLE', message: expect.stringContaining('BUSY') };
  for (const [, verb] of VERBS.slice(0, 6)) await expect(verb()).rejects.toMatchObject(failure);
  await plain.call('SCRIPT', 'KILL');
  expect(await loop).toContain('killed');
  stuck.disconnect();
  expect(await ask('cyd', OTHER)).toMatchObject({ outcome: 'granted' });
  expect(await room.locks.release(held('ann', JOB))).toMatchObject([{ outcome: 'released' }]);
});

test('a server that is LOADING grants nothing, and what was on disk is as it was', async () => {
  await ask('ann', JOB);
  await plain.eval("for n = 1, 3000 do redis.call('SET', 'reeve:none:' .. n, 'x') end", 0);
  await plain.call('SAVE');
  await server.crash();
  const coming = server.start();
  let failures = 0;
  const answer = await until('it is there again', () =>
    ask('bob', JOB).catch((error: unknown) => {
      expect(error).toBeInstanceOf(ReeveError);
      expect((error as ReeveError).code).toMatch(/^REDIS_(UNAVAILABLE|REPLY_UNKNOWN)$/);
      failures += 1;
      return undefined;
    }),
  );
  await coming;
  expect(failures).toBeGreaterThan(0);
  expect(answer).toMatchObject({ outcome: 'held', blocked: { holders: [{ agent: 'ann' }] } });
  await plain.eval("for n = 1, 3000 do redis.call('DEL', 'reeve:none:' .. n) end", 0);
});

test('after a restart that lost everything all holders are told LOST, nobody is granted twice, and tokens rise', async () => {
  const before = await ask('ann', JOB);
  await ask('ann', `${DB}+shared`, { lockId: 'ann-2' });
  await ask('bob', JOB, { waitMs: 60_000 });
  await server.crash();
  await rm(join(server.dir, 'dump.rdb'), { force: true });
  await server.start();
  await room.connection.whenReady(AbortSignal.timeout(10_000));

  expect(await room.locks.heartbeat(held('ann', JOB))).toMatchObject({ outcome: 'lost' });
  expect(await room.locks.release(held('ann', JOB))).toMatchObject([{ outcome: 'lost' }]);
  expect(await room.locks.heartbeat(held('ann', DB, 'ann-2'))).toMatchObject({ outcome: 'lost' });
  // A waiter learns that its place is gone, rather than waiting where nobody stands.
  expect(await ask('bob', JOB, { waitMs: 60_000, queued: true })).toMatchObject({ outcome: 'evicted' });
  expect(await plain.keys('*')).toEqual([]);
  const after = await ask('bob', JOB);
  const token = (outcome: typeof after) => (outcome.outcome === 'granted' ? outcome.grants[0]!.token : 0);
  expect(token(after)).toBeGreaterThan(token(before));
  await sweepOnce(room.locks);
  expect(await complaints(room, true)).toEqual([]);
});
