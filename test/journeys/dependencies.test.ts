import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { type RedisServer, redisServer } from '../../src/redis/server.ts';
import { onlyObject, reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { postgresForTests } from '../support/postgres.ts';
import { findTestRedis, systemPath } from '../support/redis.ts';
import { until } from '../support/until.ts';

const postgres = await postgresForTests();

let folder: string;
let redis: RedisServer;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-deps-'));
  const dir = join(folder, 'elsewhere');
  redis = redisServer({ find: () => findTestRedis(), dir, path: systemPath, clock: systemClock, log: silentLog });
});
afterEach(async () => {
  await redis.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

/** A Redis that the daemon does not run, and how to name it. */
async function anExternalRedis() {
  await redis.start();
  const address = redis.address();
  if (address.kind !== 'socket') throw new Error('the path of the temporary folder is too long');
  return { url: `unix://:${address.password}@${address.path}`, password: address.password, path: address.path };
}

interface Dependency {
  readonly name: string;
  readonly ok: boolean;
  readonly embedded: boolean;
  readonly address: string;
  readonly problem?: string;
  readonly next?: string;
}

/** Everything that a user can ask about the state, by its door. */
async function everyAnswer(daemon: TestDaemon) {
  const run = async (...words: string[]) =>
    onlyObject(await reeve([...words, '--json'], { cwd: daemon.cwd, env: { REEVE_URL: daemon.url } }));
  return {
    status: (await run('status')) as { state: string; dependencies: Dependency[] },
    doctor: (await run('doctor')) as { healthy: boolean; findings: { check: string; result: string; says: string }[] },
    config: (await run('config', 'show', '--url', daemon.url, '--sources')) as {
      settings: { redis: { url?: string }; store: { url?: string } };
      sources: Record<string, string>;
    },
    readyz: (await daemon.get('/readyz')) as { status: number; body: { dependencies: Dependency[] } },
    metrics: (await daemon.get('/metrics')).body as string,
    openapi: (await daemon.get('/api/v1/openapi.json')).body as { openapi: string; paths: object },
  };
}

const named = (dependencies: readonly Dependency[], name: string) =>
  dependencies.find((dependency) => dependency.name === name);

describe('every door tells the truth', () => {
  test('about the embedded Redis and store', async () => {
    await using daemon = await startDaemon();
    const { status, doctor, config, readyz, metrics, openapi } = await everyAnswer(daemon);

    for (const { dependencies } of [status, readyz.body]) {
      expect(named(dependencies, 'redis')).toMatchObject({
        ok: true,
        embedded: true,
        address: `unix:${join(daemon.dataDir, 'redis/redis.sock')}`,
        facts: { pid: await daemon.redisPid(), restarts: 0 },
      });
      expect(named(dependencies, 'store')).toMatchObject({ ok: true, embedded: true });
    }
    expect(status.state).toBe('ready');
    expect(doctor.healthy).toBe(true);
    expect(doctor.findings.find(({ check }) => check === 'redis version')?.says).toContain('embedded');
    expect(config.settings.redis.url).toBeUndefined();
    expect(config.sources['http.port']).toBe('flag --http-port');
    expect(metrics).toContain('reeve_dependency_up{dependency="redis"} 1');
    expect(metrics).toMatch(/reeve_events_total\{stream="system",event="daemon:started"\} 1/);
    expect(openapi).toMatchObject({ openapi: '3.1.1', paths: { '/readyz': {}, '/api/v1/status': {} } });
  });

  test('about a Redis elsewhere, without its password', async () => {
    const { url, password, path } = await anExternalRedis();
    await using daemon = await startDaemon({ env: { REDIS_URL: url } });
    const answers = await everyAnswer(daemon);
    const { status, doctor, config, readyz } = answers;

    expect((await daemon.logged('ready')).embedded).not.toContain('redis');
    for (const { dependencies } of [status, readyz.body]) {
      expect(named(dependencies, 'redis')).toMatchObject({ ok: true, embedded: false, address: `unix:${path}` });
    }
    expect(doctor.healthy).toBe(true);
    expect(doctor.findings.find(({ check }) => check === 'redis version')?.says).not.toContain('embedded');
    expect(config.settings.redis.url).toBe(`unix://***@${path}`);
    expect(config.sources['redis.url']).toBe('environment REDIS_URL');
    expect(JSON.stringify([answers, daemon.logs])).not.toContain(password);

    expect(await daemon.stop()).toBe(0);
    // It is not ours to stop.
    expect(redis.pid()).toBeDefined();
  });

  test.skipIf(postgres.missing)('about a PostgreSQL elsewhere', async () => {
    await using server = await postgres.start();
    const database = await server.createDatabase();
    await using daemon = await startDaemon({ env: { DATABASE_URL: database } });
    const { status, doctor, config } = await everyAnswer(daemon);

    expect(named(status.dependencies, 'store')).toMatchObject({
      ok: true,
      embedded: false,
      facts: { dialect: 'postgres' },
    });
    expect(doctor.findings.find(({ check }) => check === 'database')).toMatchObject({ result: 'ok' });
    expect(config.sources['store.url']).toBe('environment DATABASE_URL');
    const archived = () => server.query("select event from events where event = 'daemon:started'", database);
    await until('the history is kept there', async () => (await archived()).length === 1);
  });
});

describe('a Redis elsewhere that goes away', () => {
  test('makes the daemon not ready, with the reason, until it is back', async () => {
    const { url } = await anExternalRedis();
    await using daemon = await startDaemon({ env: { REDIS_URL: url } });
    const readyz = async () =>
      (await daemon.get('/readyz')) as { status: number; body: { ready: boolean; dependencies: Dependency[] } };

    await redis.stop();
    const down = await until('it is not ready', async () => {
      const answer = await readyz();
      return answer.status === 503 && answer;
    });
    expect(down.body.ready).toBe(false);
    expect(named(down.body.dependencies, 'redis')).toMatchObject({ ok: false, code: 'REDIS_UNAVAILABLE' });
    expect(named(down.body.dependencies, 'redis')?.problem).toContain('does not answer');
    // It lives, and says what is wrong to whoever asks.
    expect((await daemon.get('/healthz')).status).toBe(200);
    expect((await daemon.get('/api/v1/events')).status).toBe(503);
    expect(await reeve(['ready'], { cwd: daemon.cwd })).toMatchObject({
      code: 8,
      stdout: expect.stringContaining('down name=redis'),
    });
    expect((await reeve(['doctor'], { cwd: daemon.cwd })).code).toBe(1);

    await redis.start();
    await until('it is ready again by itself', async () => (await readyz()).status === 200);
    expect((await daemon.get('/api/v1/events')).status).toBe(200);
  });

  test('does not keep the daemon from stopping', async () => {
    const { url } = await anExternalRedis();
    await using daemon = await startDaemon({ env: { REDIS_URL: url } });
    await redis.stop();

    expect(await daemon.stop()).toBe(0);
    expect(daemon.logs.at(-1)).toMatchObject({ msg: 'stopped' });
  });
});
