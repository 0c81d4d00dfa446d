import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Job } from '../../src/jobs/job.ts';
import { type Handler, type Handlers, Jobs } from '../../src/jobs/jobs.ts';
import { silentLog } from '../../src/log.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';
import { until } from '../support/until.ts';

let room: RedisRoom;
beforeAll(async () => {
  room = await aRedisRoom();
});
afterEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

const aDaemon = (handlers: Handlers) => new Jobs({ ...room, clock: systemClock, log: silentLog, handlers });
const aHandler = (run: Handler['run'], more: Partial<Handler> = {}): Handler => ({ limitMs: 5_000, run, ...more });

/** Notes what runs, and whether the same job ever ran in two places at once. */
function aLog() {
  const jobs: Job[] = [];
  const running = new Set<string>();
  let overlaps = 0;
  const run = async (job: Job) => {
    if (running.has(job.id)) overlaps += 1;
    running.add(job.id);
    await room.client.ping();
    jobs.push(job);
    running.delete(job.id);
  };
  return { jobs, run, overlaps: () => overlaps };
}

test('a job runs when it is due, not before, and not again', async () => {
  const { jobs, run } = aLog();
  const daemon = aDaemon({ task_timeout: aHandler(run) });
  await daemon.plan({ type: 'task_timeout', target: 'T-1' }, { inSeconds: 60 });
  await daemon.runDueOnce();
  expect(jobs).toEqual([]);
  room.shift(60_000);
  expect(await daemon.runDueOnce()).toEqual({ ran: 1, failed: 0 });
  expect(jobs).toMatchObject([{ type: 'task_timeout', target: 'T-1' }]);
  expect(await daemon.runDueOnce()).toEqual({ ran: 0, failed: 0 });
});

test('the same job planned twice is one, and keeps its first time', async () => {
  const { jobs, run } = aLog();
  const daemon = aDaemon({ task_timeout: aHandler(run) });
  expect(await daemon.plan({ type: 'task_timeout', target: 'T-1' }, { inSeconds: 10 })).toBe(true);
  expect(await daemon.plan({ type: 'task_timeout', target: 'T-1' }, { inSeconds: 99 })).toBe(false);
  room.shift(10_000);
  await daemon.runDueOnce();
  expect(jobs).toHaveLength(1);
});

test('two daemons share a hundred jobs: each runs once, in one place', async () => {
  const { jobs, run, overlaps } = aLog();
  const daemons = [aDaemon({ archive: aHandler(run) }), aDaemon({ archive: aHandler(run) })];
  for (let at = 0; at < 100; at += 1) await daemons[0]?.plan({ type: 'archive', target: `A-${at}` }, { inSeconds: 0 });
  await Promise.all(daemons.flatMap((daemon) => [daemon.runDueOnce(), daemon.runDueOnce(), daemon.runDueOnce()]));
  expect(jobs).toHaveLength(100);
  expect(new Set(jobs.map(({ target }) => target)).size).toBe(100);
  expect(overlaps()).toBe(0);
});

test('periodic work is done once each period, however many daemons ask', async () => {
  const { jobs, run, overlaps } = aLog();
  const handlers = { lock_cleanup: aHandler(run, { everySeconds: () => 2 }) };
  const daemons = [aDaemon(handlers), aDaemon(handlers), aDaemon(handlers)];
  for (let second = 0; second < 10; second += 1) {
    await Promise.all(daemons.map((daemon) => daemon.runDueOnce()));
    room.shift(1_000);
  }
  expect(jobs).toHaveLength(5);
  expect(overlaps()).toBe(0);
});

test('periodic work that rests is brought forward when it is wanted, and never put back', async () => {
  const { jobs, run } = aLog();
  const daemon = aDaemon({ lock_cleanup: aHandler(run, { everySeconds: () => 60 }) });
  await daemon.runDueOnce();
  const score = async () => Number((await room.client.zrange('ade:job:scheduled', '0', '0', 'WITHSCORES'))[1]);
  const before = await score();
  daemon.hurry('lock_cleanup', { inSeconds: 5 });
  daemon.hurry('lock_cleanup', { inSeconds: 30 });
  await until('it is planned anew', async () => (await score()) < before);
  expect(before - (await score())).toBeGreaterThan(50);
  room.shift(6_000);
  await daemon.runDueOnce();
  expect(jobs).toHaveLength(2);
});

test('one knows how long there is nothing to do', async () => {
  const { run } = aLog();
  const daemon = aDaemon({ task_timeout: aHandler(run) });
  await daemon.runDueOnce();
  expect(daemon.restMs).toBe(1_000);
  await daemon.plan({ type: 'task_timeout', target: 'T-1' }, { inSeconds: 0.5 });
  await daemon.runDueOnce();
  expect(daemon.restMs).toBeGreaterThan(0);
  expect(daemon.restMs).toBeLessThanOrEqual(500);
  room.shift(600);
  await daemon.runDueOnce();
  expect(daemon.restMs).toBeLessThan(1_000);
});

test('periodic work comes back by itself after Redis lost everything', async () => {
  const { jobs, run } = aLog();
  const daemon = aDaemon({ lock_cleanup: aHandler(run, { everySeconds: () => 60 }) });
  await daemon.runDueOnce();
  await room.reset();
  await daemon.runDueOnce();
  expect(jobs).toHaveLength(2);
});

test('a job of a daemon that died is done by another when its lock has run out', async () => {
  const { jobs, run } = aLog();
  const daemon = aDaemon({ archive: aHandler(run) });
  await daemon.plan({ type: 'archive', id: 'a1' }, { inSeconds: 0 });
  await room.client.set(room.keys.jobLock('a1'), 'the dead one', 'PX', 60_000);
  expect(await daemon.runDueOnce()).toEqual({ ran: 0, failed: 0 });
  // The lock of a job is Redis's own expiry: nothing but its end is needed.
  await room.client.del(room.keys.jobLock('a1'));
  expect(await daemon.runDueOnce()).toEqual({ ran: 1, failed: 0 });
  expect(jobs).toHaveLength(1);
});

test('a lock that ran out and went to another is not given back by the first', async () => {
  const daemon = aDaemon({
    archive: aHandler(() => room.client.set(room.keys.jobLock('a1'), 'another', 'PX', 60_000)),
  });
  await daemon.plan({ type: 'archive', id: 'a1' }, { inSeconds: 0 });
  await daemon.runDueOnce();
  expect(await room.client.get(room.keys.jobLock('a1'))).toBe('another');
});

test('a job that fails is tried again later; a periodic one in its next period', async () => {
  let tries = 0;
  const failing = async () => {
    tries += 1;
    throw new Error('no luck');
  };
  const daemon = aDaemon({ archive: aHandler(failing), lock_cleanup: aHandler(failing, { everySeconds: () => 5 }) });
  await daemon.plan({ type: 'archive', id: 'a1' }, { inSeconds: 0 });
  expect(await daemon.runDueOnce()).toEqual({ ran: 2, failed: 2 });
  expect(await daemon.runDueOnce()).toEqual({ ran: 0, failed: 0 });
  room.shift(10_000);
  expect(await daemon.runDueOnce()).toEqual({ ran: 2, failed: 2 });
  expect(tries).toBe(4);
});

test('takes what a raw client planned in the contract’s form, and drops what is no job', async () => {
  const { jobs, run } = aLog();
  const daemon = aDaemon({ lock_cleanup: aHandler(run) });
  const scheduled = room.keys.scheduledJobs();
  await room.client.zadd(scheduled, 1, '{"type":"lock_cleanup","target":"ade:lock:task:123"}');
  await room.client.zadd(scheduled, 1, 'not json', 2, '{"type":"coffee"}', 3, '["lock_cleanup"]');
  expect(await daemon.runDueOnce()).toEqual({ ran: 1, failed: 0 });
  expect(jobs).toMatchObject([{ type: 'lock_cleanup', target: 'ade:lock:task:123' }]);
  expect(await room.client.exists(scheduled)).toBe(0);
});
