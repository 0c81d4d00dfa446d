import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import { timeoutJob } from '../../../src/coordinator/tasks/timeout-job.ts';
import { Jobs } from '../../../src/jobs/jobs.ts';
import { silentLog } from '../../../src/log.ts';
import { aTaskRoom, inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

/** What a daemon has that runs jobs. */
function aRunner() {
  const { tasks, locks, events, keyspace } = room;
  const more = { clock: systemClock, log: silentLog };
  const reconciler = new Reconciler({ tasks, locks, events, keyspace, limits: () => room.limits, ...more });
  const task_timeout = timeoutJob({ tasks, reconciler, log: silentLog });
  return new Jobs({ ...room, ...more, handlers: { task_timeout } });
}
const result = (task: string) => room.client.hget(room.keys.taskExecution(task), 'result');
const limited = (task_id: string) => ({ task_id, timeout_seconds: 60 });

test('what takes longer than it may is a time-out: tried again, and given up after the last try', async () => {
  await room.add(limited('A'), 'B');
  const jobs = aRunner();
  for (const status of ['blocked', 'blocked', 'failed']) {
    await room.tasks.work.claim({ agent: 'ann', task: 'A' });
    room.shift(59_000);
    await jobs.runDueOnce();
    expect(await room.status('A')).toBe('assigned');
    room.shift(11_000);
    await jobs.runDueOnce();
    expect([await room.status('A'), await result('A')]).toEqual([status, 'timeout']);
    room.shift(5_000);
    await room.tasks.overdue.dueOnce();
  }
  expect(await room.tasks.views.detail('A')).toMatchObject({ station: 'failed', because: 'it took longer than 60 s' });
  expect(await room.client.zrange(room.keys.deadTasks(), '0', '-1')).toEqual(['A']);
  expect(await room.tasks.work.complete({ task: 'A', agent: 'ann' })).toMatchObject({ outcome: 'late' });
});

test('the job is in the plan under its own name, and in one place at a time', async () => {
  await room.add(limited('A'));
  await room.tasks.work.claim({ agent: 'ann' });
  const [one, other] = [aRunner(), aRunner()];
  await one.runDueOnce();
  const planned = await room.client.zrange(room.keys.scheduledJobs(), '0', '-1');
  expect(planned.map((text) => JSON.parse(text))).toEqual([{ type: 'task_timeout', id: 'task_timeout' }]);
  room.shift(61_000);
  await room.client.set(room.keys.jobLock('task_timeout'), 'another daemon', 'PX', 60_000);
  await other.runDueOnce();
  expect(await room.status('A')).toBe('assigned');
  await room.client.del(room.keys.jobLock('task_timeout'));
  await Promise.all([one.runDueOnce(), other.runDueOnce()]);
  expect(await room.client.hget(room.keys.taskRecord('A'), 'attempts')).toBe('1');
});

test('a job that anyone plans for one task ends that one, and only if its time is over', async () => {
  await room.add(limited('A'), limited('B'));
  await room.tasks.work.claim({ agent: 'ann', task: 'A' });
  const early = JSON.stringify({ type: 'task_timeout', target: 'A' });
  await room.plain.zadd(room.keys.scheduledJobs(), 1, early);
  await aRunner().runDueOnce();
  expect(await room.status('A')).toBe('assigned');
  expect(await room.client.exists(room.keys.jobQueue('task_timeout'))).toBe(0);
  room.shift(61_000);
  await room.plain.zadd(room.keys.scheduledJobs(), 1, early);
  await aRunner().runDueOnce();
  expect(await room.status('A')).toBe('blocked');
});

test('a plain client that has just said that it is done is believed first', async () => {
  await room.add(limited('A'));
  await room.plain.rpop(room.keys.taskQueue());
  await aRunner().runDueOnce();
  await room.plain.set(room.keys.taskStatus('A'), 'in_progress');
  room.shift(5_000);
  await aRunner().runDueOnce();
  room.shift(70_000);
  await room.plain.set(room.keys.taskResult('A'), '{"notes":"done"}');
  await room.plain.set(room.keys.taskStatus('A'), 'completed');
  await aRunner().runDueOnce();
  expect([await room.status('A'), await result('A')]).toEqual(['completed', 'success']);
});

test('the work of another project is left to its own daemon', async () => {
  await using web = await aTaskRoom('web');
  await web.add(limited('A'));
  const { tasks, locks, events, keyspace } = web;
  const more = { clock: systemClock, log: silentLog };
  const reconciler = new Reconciler({ tasks, locks, events, keyspace, limits: () => web.limits, ...more });
  const handlers = { task_timeout: timeoutJob({ tasks, reconciler, log: silentLog }) };
  const jobs = new Jobs({ ...web, ...more, handlers });
  await jobs.plan({ type: 'task_timeout', target: 'SHOP-1' }, { inSeconds: 0 });
  await jobs.runDueOnce();
  const planned = await web.client.zrange(web.keys.scheduledJobs(), '0', '-1');
  expect(planned.map((text) => JSON.parse(text))).toEqual([{ type: 'task_timeout', id: 'task_timeout.web' }]);
  expect(await web.client.zcard(web.keys.jobQueue('task_timeout'))).toBe(1);
});
