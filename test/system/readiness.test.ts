import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ReeveError } from '../../src/errors.ts';
import type { Dependency } from '../../src/system/dependency.ts';
import { Readiness } from '../../src/system/readiness.ts';
import { System } from '../../src/system/system.ts';
import { fakeClock } from '../support/clock.ts';

/** A dependency whose health the test decides. */
function aDependency(name: string, required = true) {
  const state = { fails: undefined as Error | undefined, hangs: false, asked: 0 };
  const dependency: Dependency = {
    name,
    required,
    embedded: false,
    address: () => `${name}.example`,
    check: async () => {
      state.asked += 1;
      if (state.hangs) return new Promise(() => {});
      if (state.fails) throw state.fails;
      return { version: '1' };
    },
  };
  return { state, dependency };
}

function aSystem(...dependencies: Dependency[]) {
  const clock = fakeClock(Date.UTC(2026, 0, 1));
  const explain = (error: unknown) => (error instanceof ReeveError ? error : undefined);
  const readiness = new Readiness({ dependencies, clock, explain });
  const system = new System({
    version: '1',
    instance: 'here',
    project: 'odyssey',
    dataDir: '/data',
    clock,
    readiness,
    needsTokens: async () => false,
    address: () => 'http://127.0.0.1:7420',
    config: () => ({ settings: {}, sources: {} }),
    diagnose: async () => [],
  });
  return { clock, readiness, system };
}

const down = new ReeveError('REDIS_UNAVAILABLE', { address: 'redis.example', problem: 'ECONNREFUSED' });

describe('readiness', () => {
  test('is there when everything required is', async () => {
    const [redis, tasks] = [aDependency('redis'), aDependency('tasks', false)];
    const { system } = aSystem(redis.dependency, tasks.dependency);

    expect(await system.readiness()).toMatchObject({ ready: true, draining: false });
    expect((await system.status()).state).toBe('ready');
    tasks.state.fails = new Error('gone');
    expect(await system.readiness()).toMatchObject({ ready: true });
    expect((await system.status()).state).toBe('degraded');
    redis.state.fails = down;
    expect(await system.readiness()).toMatchObject({ ready: false });
    expect((await system.status()).state).toBe('not ready');
  });

  test('says what is wrong with what, and what to do', async () => {
    const redis = aDependency('redis');
    redis.state.fails = down;
    const { system } = aSystem(redis.dependency);
    const { dependencies } = await system.readiness();

    expect(dependencies).toEqual([
      {
        name: 'redis',
        ok: false,
        required: true,
        embedded: false,
        address: 'redis.example',
        latency_ms: 0,
        since: '2026-01-01T00:00:00.000Z',
        facts: {},
        code: 'REDIS_UNAVAILABLE',
        problem: expect.stringContaining('ECONNREFUSED'),
        next: expect.stringMatching(/\S/),
      },
    ]);
  });

  test('says since when it is as it is, not since when it was last asked', async () => {
    const redis = aDependency('redis');
    const { clock, readiness } = aSystem(redis.dependency);
    const since = async () => (await readiness.ask())[0]?.since;
    const first = await since();
    await clock.advance(60_000);
    expect(await since()).toBe(first);
    redis.state.fails = down;
    await clock.advance(60_000);
    expect(await since()).toBe('2026-01-01T00:02:00.000Z');
    await clock.advance(60_000);
    expect(await since()).toBe('2026-01-01T00:02:00.000Z');
    redis.state.fails = undefined;
    expect(await since()).toBe('2026-01-01T00:03:00.000Z');
  });

  test('is asked of a dependency once for all who ask at the same moment', async () => {
    const redis = aDependency('redis');
    const { system, readiness } = aSystem(redis.dependency);
    await Promise.all([...Array.from({ length: 20 }, () => system.readiness()), readiness.ask(), system.status()]);
    expect(redis.state.asked).toBe(1);
    await system.readiness();
    expect(redis.state.asked).toBe(2);
  });

  test('does not wait for a dependency that hangs', async () => {
    const [redis, store] = [aDependency('redis'), aDependency('store')];
    store.state.hangs = true;
    const { clock, system } = aSystem(redis.dependency, store.dependency);
    const asked = system.readiness();
    await clock.asleep();
    await setImmediate();
    await clock.advance(2_000);
    const { ready, dependencies } = await asked;

    expect(ready).toBe(false);
    expect(dependencies).toMatchObject([
      { name: 'redis', ok: true },
      { name: 'store', ok: false, code: 'DEPENDENCY_SLOW', latency_ms: 2_000 },
    ]);
    expect(clock.sleepers).toBe(0);
  });

  test('ends when draining begins, whatever the dependencies say', async () => {
    const { system, readiness } = aSystem(aDependency('redis').dependency);
    readiness.drain();

    expect(await system.readiness()).toMatchObject({ ready: false, draining: true, dependencies: [{ ok: true }] });
    expect((await system.status()).state).toBe('draining');
    expect(system.health()).toMatchObject({ alive: true, pid: process.pid });
  });
});

test('uptime counts from the start', async () => {
  const { clock, system } = aSystem();
  await clock.advance(90_000);

  expect(system.health().uptime_seconds).toBe(90);
  expect(await system.status()).toMatchObject({ uptime_seconds: 90, started_at: '2026-01-01T00:00:00.000Z' });
});
