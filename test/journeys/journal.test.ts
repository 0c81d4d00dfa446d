import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { redisServer } from '../../src/redis/server.ts';
import { startDaemon } from '../support/daemon.ts';
import { findTestRedis, systemPath } from '../support/redis.ts';
import { until } from '../support/until.ts';

test('while Redis is away, new work and results are noted and done later; what needs it is refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reeve-journal-'));
  const redis = redisServer({
    find: () => findTestRedis(),
    dir: join(folder, 'r'),
    path: systemPath,
    clock: systemClock,
    log: silentLog,
  });
  await redis.start();
  const address = redis.address();
  if (address.kind !== 'socket') throw new Error('the path of the temporary folder is too long');
  const env = { REDIS_URL: `unix://:${address.password}@${address.path}` };
  let daemon = await startDaemon({ cwd: folder, env });
  const post = async (path: string, body: object = {}) => {
    const answer = await fetch(`${daemon.url}/api/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return {
      status: answer.status,
      after: answer.headers.get('retry-after'),
      body: (await answer.json()) as Record<string, unknown>,
    };
  };
  const { task, lease } = (await post('/agents/ann/claim')).body as {
    task: { task_id: string };
    lease: Record<string, string>;
  };
  const { lock_id, fencing_token } = lease;

  await redis.stop();
  await until('Redis is missed', async () => (await daemon.get('/readyz')).status === 503);
  expect(await post(`/tasks/${task.task_id}/complete`, { agent: 'ann', lock_id, fencing_token })).toMatchObject({
    status: 202,
    body: { journalled: true, journal_id: expect.stringMatching(/^jrn_/) },
  });
  expect(await post('/tasks', { task: 'NEW-1', title: 'New' })).toMatchObject({ status: 202 });
  expect(await post('/agents/ben/claim')).toMatchObject({
    status: 503,
    after: '5',
    body: { code: 'REDIS_UNAVAILABLE' },
  });
  const { dependencies } = (await daemon.get('/api/v1/status')).body as {
    dependencies: { name: string; facts: object }[];
  };
  expect(dependencies.find(({ name }) => name === 'journal')?.facts).toEqual({ waiting: 2, parked: 0 });

  // What is noted outlives the daemon, too.
  await daemon.stop('SIGKILL');
  await redis.start();
  daemon = await startDaemon({ cwd: folder, env });
  const look = async () => ((await daemon.get('/api/v1/journal')).body as { items: { state: string }[] }).items;
  await until('all is done', async () => (await look()).every(({ state }) => state === 'done'));
  expect((await daemon.get(`/api/v1/tasks/${task.task_id}`)).body).toMatchObject({ station: 'done' });
  expect((await daemon.get('/api/v1/tasks/NEW-1')).body).toMatchObject({ state: 'DRAFT' });

  await daemon.stop();
  await redis.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}, 60_000);
