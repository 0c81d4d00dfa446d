import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { parseSchedule, untilNext } from '../../src/schedule.ts';
import { directorySource } from '../../src/sync/directory-source.ts';
import { poller } from '../../src/sync/poller.ts';
import { makeSource, sourceSettings } from '../../src/sync/sources.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aManifest, aSyncRoom } from '../support/sync.ts';
import { until } from '../support/until.ts';

let redis: TestRedis;
let dir: string;
beforeAll(async () => {
  redis = await startTestRedis();
  dir = await mkdtemp(join(tmpdir(), 'reeve-poll-'));
  await mkdir(join(dir, 'prompts'));
});
afterAll(async () => {
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});

describe('a schedule', () => {
  test('is an interval, a cron expression or off', () => {
    expect(parseSchedule('30s')).toEqual({ kind: 'every', ms: 30_000 });
    expect(parseSchedule('2h')).toEqual({ kind: 'every', ms: 7_200_000 });
    expect(parseSchedule('off')).toEqual({ kind: 'off' });
    expect(parseSchedule('*/10 * * * *')).toEqual({ kind: 'cron', expression: '*/10 * * * *' });
    for (const wrong of ['', 'often', '10', '500ms', '61 * * * *']) expect(parseSchedule(wrong)).toBeUndefined();
  });

  test('spreads its turns', () => {
    const every = parseSchedule('100s')!;
    expect(untilNext(every, 0, () => 0)).toBe(80_000);
    expect(untilNext(every, 0, () => 1)).toBe(120_000);
    const cron = untilNext(parseSchedule('* * * * *')!, systemClock.now(), () => 0);
    expect(cron).toBeGreaterThan(0);
    expect(cron).toBeLessThanOrEqual(61_000);
  });
});

/** A clock whose sleepers are woken by hand. */
function pausedClock() {
  const pauses: { ms: number; wake: () => void }[] = [];
  const clock: Clock = {
    now: () => systemClock.now(),
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        pauses.push({ ms, wake: resolve });
        signal?.addEventListener('abort', () => resolve(), { once: true });
      }),
  };
  return { clock, pauses };
}

test('a poller syncs at the start, and again when its pause is over', async () => {
  const { clock, pauses } = pausedClock();
  await using room = await aSyncRoom(redis, { source: directorySource({ dir, clock: systemClock }) });
  await writeFile(join(dir, 'prompts/a.yaml'), aManifest('a'));
  const polls = poller({
    sync: room.sync,
    source: 'main',
    schedule: { kind: 'every', ms: 60_000 },
    clock,
    log: silentLog,
    random: () => 0.5,
  });
  await polls.start();
  await until('the first pause', () => pauses.length === 1);
  expect(await room.ids()).toEqual(['a']);
  expect(pauses[0]!.ms).toBe(60_000);
  expect((await room.sync.status())[0]?.next_at).toMatch(/^20/);

  await writeFile(join(dir, 'prompts/b.yaml'), aManifest('b'));
  pauses[0]!.wake();
  await until('the second pause', () => pauses.length === 2);
  expect(await room.ids()).toEqual(['a', 'b']);
  await polls.stop();
});

test('a poller that finds the lock of a daemon that died waits for that lock to end, not for its next turn', async () => {
  const { clock, pauses } = pausedClock();
  await using room = await aSyncRoom(redis, { source: directorySource({ dir, clock: systemClock }) });
  await redis.client().hset('asset:sync:lock', { holder: 'the one before', token: 'gone' });
  const schedule = { kind: 'every', ms: 3_600_000 } as const;
  const polls = poller({ sync: room.sync, source: 'main', schedule, clock, log: silentLog, random: () => 0.5 });
  await polls.start();
  await until('the first pause', () => pauses.length === 1);
  expect(pauses[0]!.ms).toBe(31_000);

  await redis.client().del('asset:sync:lock');
  pauses[0]!.wake();
  await until('the second pause', () => pauses.length === 2);
  expect(pauses[1]!.ms).toBe(3_600_000);
  await polls.stop();
});

describe('the settings of sources', () => {
  const assets = { dir: '/a', include: ['**'], sources: [] };
  const github = { apiUrl: 'https://api.github.com' };
  const options = { fetch, clock: systemClock, surroundings: { PATH: '', HOME: '' } };

  test('are the folder, the repository, or the list', () => {
    expect(sourceSettings({ assets, github }, true)).toEqual([{ name: 'assets', dir: '/a', optional: false }]);
    expect(sourceSettings({ assets, github: { ...github, repo: 'o/r' } }, true)).toMatchObject([
      { name: 'github', github: 'o/r' },
    ]);
    const sources = [
      { name: 'x', dir: '/x' },
      { name: 'y', git: '/y', namespace: 'team' },
    ];
    expect(sourceSettings({ assets: { ...assets, sources }, github }, true)).toBe(sources);
    expect(makeSource(sources[1]!, { assets, github }, options)).toMatchObject({
      name: 'y',
      namespace: 'team',
      source: { kind: 'git' },
    });
  });

  test('refuse two sources of one name or one namespace, and half of a GitHub App', () => {
    const twice = [
      { name: 'x', dir: '/x' },
      { name: 'x', dir: '/y', namespace: 'n' },
    ];
    expect(() => sourceSettings({ assets: { ...assets, sources: twice }, github }, true)).toThrow(
      'two of them have the name x',
    );
    const shared = [
      { name: 'x', dir: '/x' },
      { name: 'y', dir: '/y' },
    ];
    expect(() => sourceSettings({ assets: { ...assets, sources: shared }, github }, true)).toThrow('namespace');
    expect(() =>
      makeSource({ name: 'g', github: 'o/r' }, { assets, github: { ...github, appId: '1' } }, options),
    ).toThrow('belong together');
  });
});

test('two sources fill two namespaces and do not see each other', async () => {
  await redis.flush();
  await using one = await aSyncRoom(redis, { source: directorySource({ dir, clock: systemClock }) });
  await using two = await aSyncRoom(redis, {
    source: directorySource({ dir, clock: systemClock }),
    namespace: 'team',
    include: ['**/a.yaml'],
  });
  await one.run();
  await two.run();
  expect(await one.ids()).toEqual(['a', 'b']);
  expect(await two.ids()).toEqual(['a']);
  expect(await redis.client().hget('asset:ns:team:metadata:a', 'id')).toBe('a');
});
