import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { redisFailure } from '../../../src/redis/failure.ts';
import { redisChecks } from '../../../src/system/checks/redis.ts';
import { diagnose, type Finding, isHealthy } from '../../../src/system/doctor.ts';
import { type RedisSettings, runRedis } from '../../support/redis-process.ts';
import { connected, targetOf } from '../../support/rooms.ts';
import { until } from '../../support/until.ts';

/** What the doctor says of a server with these settings. */
async function examined(
  settings: RedisSettings,
  { lines = [], login = {}, before = async () => {}, clock = systemClock }: Examination = {},
): Promise<Record<string, Finding>> {
  const server = await runRedis(settings, { lines });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const admin = new Redis(server.port);
  onTestFinished(() => admin.disconnect());
  await before(admin);
  const { commands: client, address } = await connected(targetOf({ port: server.port, ...login }));
  const findings = await diagnose(redisChecks({ client, address, embedded: false, clock }), (error) =>
    redisFailure(error, address),
  );
  return Object.fromEntries(findings.map((finding) => [finding.check.replace('redis ', ''), finding]));
}

interface Examination {
  readonly lines?: readonly string[];
  readonly login?: { readonly username?: string; readonly password?: string };
  readonly before?: (admin: Redis) => Promise<unknown>;
  readonly clock?: typeof systemClock;
}

const WELL: RedisSettings = { appendonly: 'yes', 'maxmemory-policy': 'noeviction' };

describe('the doctor finds', () => {
  test('nothing wrong with a server that is set up well', async () => {
    const findings = await examined(WELL);

    expect(Object.values(findings).map(({ check, result }) => [check, result])).toEqual(
      ['version', 'role', 'eviction', 'persistence', 'clock', 'scripts'].map((name) => [`redis ${name}`, 'ok']),
    );
    expect(findings.version?.says).toMatch(/^(Redis|Valkey) \d+\.\d+/);
  });

  test('a server that drops keys when it is full', async () => {
    const { eviction } = await examined({ ...WELL, 'maxmemory-policy': 'allkeys-lru', maxmemory: '100mb' });

    expect(eviction).toMatchObject({ result: 'fail', says: expect.stringContaining('allkeys-lru') });
    expect(eviction?.fix).toContain('CONFIG SET maxmemory-policy noeviction');
  });

  test('a server that would drop keys if it had a limit', async () => {
    const { eviction } = await examined({ ...WELL, 'maxmemory-policy': 'volatile-lru' });

    expect(eviction).toMatchObject({ result: 'warn' });
  });

  test('a server that keeps nothing on disk', async () => {
    const { persistence } = await examined({ appendonly: 'no', save: '' });

    expect(persistence).toMatchObject({ result: 'fail', says: expect.stringContaining('nothing is persisted') });
  });

  test('a server that only takes snapshots', async () => {
    const { persistence } = await examined({ appendonly: 'no', save: '3600 1' });

    expect(persistence).toMatchObject({ result: 'warn', says: expect.stringContaining('only snapshots') });
  });

  test('a replica, which takes no writes', async () => {
    const master = await runRedis();
    onTestFinished(() => master[Symbol.asyncDispose]());
    const { role } = await examined(WELL, {
      lines: [`replicaof 127.0.0.1 ${master.port}`],
      before: (admin) =>
        until('it follows its master', async () => (await admin.info()).includes('master_link_status:up')),
    });

    expect(role).toMatchObject({ result: 'fail', says: expect.stringContaining('replica') });
  });

  test('a user who may not run scripts', async () => {
    const { scripts } = await examined(WELL, {
      before: (admin) => admin.call('ACL', 'SETUSER', 'narrow', 'on', '>narrow', '~*', '&*', '+@all', '-@scripting'),
      login: { username: 'narrow', password: 'narrow' },
    });

    expect(scripts).toMatchObject({
      result: 'fail',
      says: expect.stringContaining('NOPERM'),
      fix: expect.stringContaining('+@scripting'),
    });
  });

  test('as much as it can where the server keeps its settings to itself', async () => {
    const { persistence, eviction } = await examined(
      { appendonly: 'no' },
      {
        before: (admin) => admin.call('ACL', 'SETUSER', 'guest', 'on', '>guest', '~*', '&*', '+@all', '-config'),
        login: { username: 'guest', password: 'guest' },
      },
    );

    expect(persistence).toMatchObject({ result: 'warn', says: expect.stringContaining('unknown') });
    expect(eviction).toMatchObject({ result: 'ok' });
  });

  test('a clock that tells another time than ours', async () => {
    const { clock } = await examined(WELL, { clock: { ...systemClock, now: () => systemClock.now() - 60_000 } });

    expect(clock).toMatchObject({ result: 'warn', says: expect.stringMatching(/6\d{4} ms ahead of/) });
  });
});

test('a check that breaks is itself a finding, and the rest still run', async () => {
  const findings = await diagnose(
    [
      { name: 'first', run: async () => Promise.reject(new Error('ECONNREFUSED')) },
      { name: 'second', run: async () => [{ result: 'ok', says: 'fine' }] },
    ],
    () => undefined,
  );

  expect(findings).toMatchObject([
    { check: 'first', result: 'fail', fix: expect.stringMatching(/\S/) },
    { check: 'second', result: 'ok' },
  ]);
  expect(isHealthy(findings)).toBe(false);
  expect(isHealthy(findings.slice(1))).toBe(true);
});
