import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, rename, rm } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { aPrdFile, FORMAT_A, rowA, type TestPrdFile } from '../support/prd-db.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());
beforeEach(() => redis.flush());
const running: TestDaemon[] = [];
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon[Symbol.asyncDispose]();
});

const AGENTS = ['cat', 'dan', 'eve'];
const TASKS = Array.from({ length: 12 }, (_, at) => `T-${at + 1}`);
const aFile = () => aPrdFile(FORMAT_A, ...TASKS.map((id) => rowA(id)));

async function aDaemon({ path }: TestPrdFile): Promise<TestDaemon> {
  const env = { REDIS_URL: `unix://:${redis.password}@${redis.options.path}`, PRD_DB: path };
  const daemon = await startDaemon({ env });
  running.push(daemon);
  return daemon;
}

async function ask({ url }: TestDaemon, path: string, body: object = {}) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = (response.status === 204 ? {} : await response.json()) as { task?: { task_id: string } };
  return { status: response.status, task: answer.task?.task_id };
}

/** Claims and completes; answers with which. */
async function work(daemon: TestDaemon, agent: string): Promise<string | undefined> {
  const { task } = await ask(daemon, `/agents/${agent}/claim`);
  if (task) expect((await ask(daemon, `/tasks/${task}/complete`, { agent })).status).toBe(200);
  return task;
}

/** `up`, or the code of what is wrong with it. */
async function stateOf(daemon: TestDaemon, name: string): Promise<string> {
  const { body } = await daemon.get('/api/v1/status');
  const { dependencies } = body as { dependencies: { name: string; ok: boolean; code?: string }[] };
  const { ok, code } = dependencies.find((one) => one.name === name)!;
  return ok ? 'up' : String(code);
}
const becomes = (daemon: TestDaemon, name: string, wanted: string) =>
  until(`${name} is ${wanted}`, async () => (await stateOf(daemon, name)) === wanted, 20_000);

/** Each task that was done stands so in the file, with one row of the log for its completion. */
async function expectWritten(path: string, done: readonly string[]): Promise<void> {
  const file = new Database(path, { readonly: true, timeout: 5_000 });
  const all = (sql: string) => file.prepare(sql).pluck().all() as string[];
  try {
    await until(
      'all is written',
      () => all(`select task_id from tasks where status = 'completed'`).length === done.length,
    );
    expect(all(`select task_id from tasks where status = 'completed'`).sort()).toEqual([...done].sort());
    const logged = all(`select task_id from redis_coordination where event_type = 'task_completed'`);
    expect(logged.sort()).toEqual([...done].sort());
  } finally {
    file.close();
  }
}

describe('work goes on while the task file', () => {
  const away: [how: string, code: string, away: (prd: TestPrdFile) => Promise<() => Promise<void>>][] = [
    [
      'is locked by another program',
      'PRD_LOCKED',
      async ({ file }) => {
        file.exec('begin exclusive');
        return async () => void file.exec('rollback');
      },
    ],
    [
      'is deleted, and put back',
      'PRD_UNREADABLE',
      async ({ path }) => {
        await copyFile(path, `${path}.copy`);
        await rm(path);
        return () => rename(`${path}.copy`, path);
      },
    ],
    [
      'is something else, and replaced by itself again',
      'PRD_UNREADABLE',
      async ({ path }) => {
        await rename(path, `${path}.kept`);
        await copyFile(new URL(import.meta.url).pathname, path);
        return () => rename(`${path}.kept`, path);
      },
    ],
  ];

  test.each(away)('%s; status says so, and nothing is missing afterwards', async (_, code, takeAway) => {
    const prd = await aFile();
    const daemon = await aDaemon(prd);
    const done = [await work(daemon, 'ann')];
    await expectWritten(prd.path, done as string[]);
    const bringBack = await takeAway(prd);
    await becomes(daemon, 'tasks', code);
    for (let count = 0; count < 3; count++) done.push(await work(daemon, 'ann'));
    expect(done).toEqual(TASKS.slice(0, 4));
    await bringBack();
    await becomes(daemon, 'tasks', 'up');
    await expectWritten(prd.path, done as string[]);
  });

  const canLimit = process.platform === 'linux' && existsSync('/usr/bin/prlimit');
  test.runIf(canLimit)('and the database are on a disk that takes no more; both catch up when it does', async () => {
    const prd = await aFile();
    const daemon = await aDaemon(prd);
    const done = [await work(daemon, 'ann')];
    await expectWritten(prd.path, done as string[]);
    const limit = (bytes: string) => execFileSync('prlimit', ['--pid', String(daemon.pid), `--fsize=${bytes}:`]);
    limit('4096');
    for (let count = 0; count < 3; count++) done.push(await work(daemon, 'ann'));
    await becomes(daemon, 'tasks', 'PRD_UNWRITABLE');
    await becomes(daemon, 'store', 'STORE_UNAVAILABLE');
    done.push(await work(daemon, 'ann'));
    limit('unlimited');
    await becomes(daemon, 'tasks', 'up');
    await becomes(daemon, 'store', 'up');
    await expectWritten(prd.path, done as string[]);
    const rows = await until('the audit has all of it', async () => {
      const { body } = await daemon.get('/api/v1/audit?action=complete&limit=50');
      const { items } = body as { items: { subject: string }[] };
      return items.length >= done.length && items;
    });
    expect(rows.map(({ subject }) => subject).sort()).toEqual(done.map((id) => `task:${id}`).sort());
    expect((await daemon.get('/api/v1/audit/verify')).status).toBe(200);
  });
});

test('two daemons with one file: the one that stands still in the middle of its work does no harm when it goes on', async () => {
  const prd = await aFile();
  const [stopped, other] = [await aDaemon(prd), await aDaemon(prd)];
  const done: (string | undefined)[] = [await work(stopped, 'ann'), await work(other, 'bob')];
  const held = await ask(stopped, '/agents/ann/claim');
  // Some of these arrive before it stands still, others after.
  const late = AGENTS.map((agent) => ask(stopped, `/agents/${agent}/claim`));
  stopped.signal('SIGSTOP');
  for (let task = await work(other, 'bob'); task; task = await work(other, 'bob')) done.push(task);
  expect((await ask(other, `/tasks/${held.task}/complete`, { agent: 'ann' })).status).toBe(200);
  done.push(held.task);
  stopped.signal('SIGCONT');
  for (const [at, { task }] of (await Promise.all(late)).entries()) {
    if (!task) continue;
    expect((await ask(stopped, `/tasks/${task}/complete`, { agent: AGENTS[at] })).status).toBe(200);
    done.push(task);
  }
  expect(done.map(String).sort()).toEqual(TASKS.toSorted());
  await expectWritten(prd.path, TASKS);
  for (const daemon of [stopped, other]) {
    await becomes(daemon, 'tasks', 'up');
    const { body } = await daemon.get('/api/v1/progress');
    expect(body).toMatchObject({ total: TASKS.length, completed: TASKS.length, in_progress: 0 });
  }
  expect(await redis.client().zcard('ade:lock:registry')).toBe(0);
  expect(await redis.client().xlen('odyssey:coord:outbox')).toBe(0);
});
