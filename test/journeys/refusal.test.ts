import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { onlyObject, reeve } from '../support/cli.ts';
import { startDaemon } from '../support/daemon.ts';
import { startTestRedis } from '../support/redis.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-refusal-'));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** A start that is expected to fail. */
const start = (args: readonly string[], env: Record<string, string> = {}) =>
  reeve(['daemon', '--http-port', '0', '--log-level', 'warn', ...args], { cwd: folder, env });

describe('the daemon refuses to start', () => {
  test('on a bad configuration, with everything that is wrong with it', async () => {
    await writeFile(join(folder, 'reeve.yaml'), 'http:\n  prot: 80\nlog:\n  level: loud\n');
    const ran = await start(['--events-keep', 'few'], { REEVE_HTPP_PORT: '1' });

    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain('unknown setting http.prot (reeve.yaml:2); did you mean http.port?');
    expect(ran.stderr).toContain('unknown variable REEVE_HTPP_PORT in the environment; did you mean REEVE_HTTP_PORT?');
    expect(ran.stderr).toContain('(flag --events-keep)');
    expect(ran.stderr).toContain('next');
    expect(ran.stdout).toBe('');
  });

  test('on a taken port, naming it and the way out', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const ran = await start(['--http-port', String(port)]);
    other.close();

    expect(ran.code).toBe(5);
    expect(ran.stderr).toContain(`127.0.0.1:${port} is in use by another program.`);
    expect(ran.stderr).toContain('reeve daemon --http-port PORT');
  });

  test('on a data directory that another daemon holds, naming that one', async () => {
    await using first = await startDaemon({ cwd: folder });
    const ran = await start([]);

    expect(ran.code).toBe(5);
    expect(ran.stderr).toContain(`process ${first.pid}`);
    expect(ran.stderr).toContain(first.url);
    expect((await first.get('/readyz')).status).toBe(200);
  });

  // Root may write everywhere; a file in the way stops root too.
  test('on a data directory that cannot be written', async () => {
    await writeFile(join(folder, 'file'), '');
    const ran = await start(['--data-dir', join(folder, 'file', 'data')]);

    expect(ran.code).toBe(1);
    expect(ran.stderr).toContain('cannot be written');
    expect(ran.stderr).toContain('reeve daemon --data-dir DIR');
  });

  test.skipIf(process.getuid?.() === 0)('on a data directory without write permission', async () => {
    await mkdir(join(folder, 'locked'));
    await chmod(join(folder, 'locked'), 0o500);
    const ran = await start(['--data-dir', join(folder, 'locked')]);

    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be written') });
  });

  test('on an address that other machines reach, while nobody has to say who they are', async () => {
    const ran = await start(['--http-host', '0.0.0.0']);

    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('0.0.0.0') });
  });

  test('on a Redis elsewhere that does not answer, with what to do', async () => {
    const ran = await start([], { REDIS_URL: 'redis://someone:s3cret@127.0.0.1:1' });

    expect(ran.code).toBe(8);
    expect(ran.stderr).toContain('127.0.0.1:1');
    expect(ran.stderr).toContain('ECONNREFUSED');
    expect(ran.stderr).toContain('reeve doctor');
    expect(ran.stderr + ran.stdout).not.toContain('s3cret');
  });

  test('on a wrong password for Redis, without repeating it', async () => {
    await using redis = await startTestRedis();
    const url = `unix://:wr0ng@${encodeURI(redis.options.path ?? '')}`;
    const ran = await start([], { REDIS_URL: url });

    expect(ran.code).toBe(8);
    expect(ran.stderr).toMatch(/refused the login: WRONGPASS/);
    expect(ran.stderr).toContain('REDIS_URL');
    expect(ran.stderr + ran.stdout).not.toContain('wr0ng');
  });

  test('and says all that as one object too, with --json', async () => {
    const ran = await start(['--json', '--http-host', '0.0.0.0', '--log-level', 'silent']);

    expect(onlyObject({ stdout: ran.stdout })).toMatchObject({ error: { code: 'INSECURE_BIND' } });
  });
});
