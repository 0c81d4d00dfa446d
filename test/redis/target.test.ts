import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { reason } from '../../src/errors.ts';
import { redisTarget, type TargetSettings } from '../../src/redis/target.ts';

const target = (url: string, more: Partial<TargetSettings> = {}) =>
  redisTarget({ url, mode: 'standalone', sentinelName: 'mymaster', tls: { verify: true }, ...more });

test.each([
  ['redis://localhost', { host: 'localhost', port: 6379, db: 0 }, 'localhost:6379'],
  ['redis://10.0.0.1:6400/3', { host: '10.0.0.1', port: 6400, db: 3 }, '10.0.0.1:6400'],
  ['redis://[::1]:6400', { host: '::1', port: 6400, db: 0 }, '::1:6400'],
  ['redis://ann:s%40fe@db', { host: 'db', username: 'ann', password: 's@fe' }, 'db:6379'],
  ['redis://:s%2Ff:e@db', { host: 'db', password: 's/f:e' }, 'db:6379'],
  ['unix:///run/redis.sock', { path: '/run/redis.sock', db: 0 }, 'unix:/run/redis.sock'],
  ['unix://:pass@/run/redis.sock?db=4', { path: '/run/redis.sock', db: 4, password: 'pass' }, 'unix:/run/redis.sock'],
])('reads %s', (url, options, address) => {
  expect(target(url)).toMatchObject({ kind: 'standalone', options, address });
});

test('a password is never part of the address, whatever it holds', () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 5, unit: 'grapheme' }).filter((text) => text.trim().length > 4),
      (password) => {
        const { address, ...rest } = target(`redis://ann:${encodeURIComponent(password)}@db:6379`);

        expect(rest).toMatchObject({ options: { password } });
        expect(address).toBe('db:6379');
      },
    ),
  );
});

test('several hosts are Sentinels or nodes of a cluster, as the mode says', () => {
  const url = 'redis://:pass@a:1,b:2,[::1]:3';
  const hosts = [
    { host: 'a', port: 1 },
    { host: 'b', port: 2 },
    { host: '::1', port: 3 },
  ];

  expect(target(url, { mode: 'cluster' })).toMatchObject({
    kind: 'cluster',
    nodes: hosts,
    options: { redisOptions: { password: 'pass' } },
  });
  expect(target(url, { mode: 'sentinel', sentinelName: 'estate', sentinelPassword: 'other' })).toMatchObject({
    kind: 'standalone',
    address: expect.stringContaining('estate at sentinels'),
    options: { sentinels: hosts, name: 'estate', password: 'pass', sentinelPassword: 'other', failoverDetector: true },
  });
});

test('rediss:// means TLS, also on the way to the Sentinels', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-pem-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'ca.crt'), 'authority');
  const tls = { verify: false, caFile: join(dir, 'ca.crt'), serverName: 'redis.example' };
  const wanted = { ca: Buffer.from('authority'), servername: 'redis.example', rejectUnauthorized: false };

  expect(target('rediss://db', { tls })).toMatchObject({ options: { tls: wanted } });
  expect(target('rediss://a,b', { tls, mode: 'sentinel' })).toMatchObject({
    options: { tls: wanted, sentinelTLS: wanted, enableTLSForSentinelMode: true },
  });
  expect(target('rediss://a,b', { tls, mode: 'cluster' })).toMatchObject({
    options: { redisOptions: { tls: wanted } },
  });
});

test.each([
  ['http://db', {}, 'must look like redis://'],
  ['redis://a,b', {}, 'several hosts need'],
  ['redis://', {}, 'is not a host and port'],
  ['redis://db:70000', {}, 'is not a host and port'],
  ['redis://db:port', {}, 'is not a host and port'],
  ['redis://db/first', {}, 'not a database number'],
  ['redis://a,b/1', { mode: 'cluster' as const }, 'only database 0'],
  ['redis://%zz:pass@db', {}, 'redis.url'],
])('refuses %s', (url, more, problem) => {
  expect(() => target(url, more)).toThrowError(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(problem) }),
  );
});

test('a refusal does not repeat the password', () => {
  for (const url of ['redis://:secret@db:port', 'redis://:sec%zzret@db', 'redis://:se/cret@db']) {
    expect(() => target(url)).toThrowError(
      expect.objectContaining({ message: expect.not.stringMatching(/secret|cret@/) }),
    );
  }
});

test('no password shows in an address or a refusal, however badly it is written', () => {
  const junk = fc.string({
    unit: fc.constantFrom('a', '@', '/', '?', '#', ':', '%', ',', '[', ']', ' '),
    maxLength: 8,
  });
  const shown = (url: string, mode: TargetSettings['mode']) => {
    try {
      return target(url, { mode }).address;
    } catch (error) {
      return reason(error);
    }
  };
  fc.assert(
    fc.property(junk, junk, fc.constantFrom('standalone', 'cluster'), (before, after, mode) => {
      expect(shown(`redis://user:${before}sesame${after}@host:6379`, mode)).not.toContain('sesame');
    }),
    { numRuns: 500 },
  );
});

test('a certificate file that cannot be read is named with its setting', () => {
  const tls = { verify: true, caFile: '/nonexistent/ca.crt' };

  expect(() => target('rediss://db', { tls })).toThrowError(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/redis\.tls\.caFile: .*ca\.crt/),
    }),
  );
});
