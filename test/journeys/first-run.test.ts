import { access, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { reeve } from '../support/cli.ts';
import { spawnDaemon, startDaemon } from '../support/daemon.ts';
import { aPathWith } from '../support/path.ts';
import { findTestRedis } from '../support/redis.ts';
import { isRunning, until } from '../support/until.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-first-'));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

describe('in an empty folder', () => {
  test('the daemon brings along everything it needs and says what to do next', async () => {
    await using daemon = await startDaemon();

    const ready = await daemon.logged('ready');
    expect(ready).toMatchObject({ url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    expect(ready.embedded).toEqual(['redis', 'store', 'tasks', 'assets']);
    expect(ready.next).toEqual(['reeve status', 'reeve doctor', 'reeve events --follow']);
    expect(await daemon.get('/readyz')).toMatchObject({ status: 200, body: { ready: true } });
  });

  test('each of the three commands it names works as it stands', async () => {
    await using daemon = await startDaemon();
    const { next } = (await daemon.logged('ready')) as unknown as { next: string[] };

    for (const command of next) {
      const [, ...words] = command.split(' ');
      const following = words.includes('--follow');
      const ran = await reeve(words, {
        cwd: daemon.cwd,
        started: (child) => {
          // What goes on for ever is interrupted once it has said something.
          if (following) child.stdout?.once('data', () => child.kill('SIGINT'));
        },
      });
      expect(ran).toMatchObject({ code: following ? 130 : 0, stderr: '' });
      expect(ran.stdout).not.toBe('');
    }
  });

  test('a person is told the same in words', async () => {
    await using daemon = await spawnDaemon({ args: ['--log-format', 'pretty'] });
    const lines = () => daemon.logs.map(({ msg }) => msg);
    await until('it says how to stop', () => lines().some((line) => line.includes('Stop: Ctrl-C')));

    const said = lines().join('\n');
    expect(said).toMatch(/reeve is ready at http:\/\/127\.0\.0\.1:\d+ /);
    for (const name of ['redis', 'store', 'tasks', 'assets']) expect(said).toMatch(new RegExp(`  ${name} +embedded `));
    for (const words of ['status', 'doctor', 'events --follow']) expect(said).toContain(`reeve ${words}`);
    expect(await daemon.stop('SIGINT')).toBe(0);
  });

  test('Ctrl-C leaves nothing running', async () => {
    await using daemon = await startDaemon();
    const redis = await daemon.redisPid();

    expect(await daemon.stop('SIGINT')).toBe(0);
    expect(await isRunning(redis)).toBe(false);
    await expect(access(join(daemon.dataDir, 'daemon.json'))).rejects.toThrow('ENOENT');
  });
});

test('where no redis-server is installed, the private copy is used', async () => {
  const cache = await aPrivateCopy();
  const env = { PATH: await aPathWith(join(folder, 'bin')), REEVE_CACHE_DIR: cache };

  const before = await reeve(['doctor'], { cwd: folder, env });
  expect(before.stdout).toContain('(private)');

  await using daemon = await startDaemon({ cwd: folder, env });
  const { program } = await findTestRedis();
  expect(await realpath(`/proc/${await daemon.redisPid()}/exe`)).toBe(await realpath(program));
});

/** A cache folder with a copy in it, as a first start would have left it. */
async function aPrivateCopy(): Promise<string> {
  const { program, libraryPath = '' } = await findTestRedis();
  const bin = join(folder, 'cache/redis/copy-1/usr/bin');
  await mkdir(bin, { recursive: true });
  const start = `#!/bin/sh\nLD_LIBRARY_PATH='${libraryPath}' exec '${program}' "$@"\n`;
  await writeFile(join(bin, 'redis-server'), start, { mode: 0o755 });
  return join(folder, 'cache');
}
