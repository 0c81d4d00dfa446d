import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { type FindOptions, findRedisServer } from '../../src/redis/find-server.ts';
import { installCommand } from '../../src/redis/install-command.ts';
import { runChild, sourceUrl } from '../support/child.ts';
import { findTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'reeve-find-'));
  await mkdir(join(home, 'bin'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const hasApt = process.platform === 'linux' && execFileSync('/bin/sh', ['-c', 'command -v apt-get || true']).length > 0;

const find = (more: Partial<FindOptions> = {}) =>
  findRedisServer({
    dataDir: join(home, 'data'),
    cacheDir: join(home, 'cache'),
    path: join(home, 'bin'),
    env: process.env,
    alsoIn: [],
    clock: systemClock,
    log: silentLog,
    ...more,
  });

async function aProgram(name: string, script: string, directory = join(home, 'bin')): Promise<string> {
  const file = join(directory, name);
  await mkdir(directory, { recursive: true });
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
  return file;
}
const versioned = (words: string) => `echo '${words} sha=00000000:0 malloc=libc bits=64'`;

/** A PATH with everything this system has, except a Redis. */
async function pathWithoutRedis(): Promise<string> {
  const bin = join(home, 'system');
  await mkdir(bin);
  for (const directory of ['/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
    for (const name of await readdir(directory).catch(() => [])) {
      if (/^(redis|valkey)-/.test(name)) continue;
      await symlink(join(directory, name), join(bin, name)).catch(() => {});
    }
  }
  return bin;
}

describe('what is already there', () => {
  test('finds the server on PATH and knows what it is', async () => {
    const program = await aProgram('redis-server', versioned('Redis server v=7.0.15'));

    expect(await find()).toEqual({ program, version: '7.0.15', flavour: 'redis', origin: 'path' });
  });

  test('takes valkey-server as well, under either name', async () => {
    const program = await aProgram('valkey-server', versioned('Valkey server v=8.0.1'));
    expect(await find()).toEqual({ program, version: '8.0.1', flavour: 'valkey', origin: 'path' });

    await aProgram('redis-server', versioned('Valkey server v=8.1.0'));
    expect(await find()).toMatchObject({ version: '8.1.0', flavour: 'valkey' });
  });

  test('looks where system programs lie that PATH leaves out', async () => {
    const program = await aProgram('redis-server', versioned('Redis server v=6.2.0'), join(home, 'sbin'));

    expect(await find({ alsoIn: [join(home, 'sbin')] })).toMatchObject({ program, origin: 'path' });
  });

  test('the setting goes before PATH', async () => {
    await aProgram('redis-server', versioned('Redis server v=7.0.15'));
    const setting = await aProgram('my-redis', versioned('Redis server v=7.2.4'), join(home, 'mine'));

    expect(await find({ setting })).toMatchObject({ program: setting, version: '7.2.4', origin: 'setting' });
  });

  test('a setting that is not there, does not run or is no Redis is refused by name', async () => {
    await aProgram('redis-server', versioned('Redis server v=7.0.15'));
    const plain = join(home, 'plain');
    await writeFile(plain, 'no program');
    const other = await aProgram('other', 'echo something else');

    for (const setting of [join(home, 'nowhere'), 'nowhere', plain, other]) {
      const refusal = { code: 'REDIS_PROGRAM_UNUSABLE', details: { program: setting } };
      await expect(find({ setting })).rejects.toMatchObject(refusal);
    }
  });

  test('a server before 6.2 is refused with its version', async () => {
    const setting = await aProgram('redis-server', versioned('Redis server v=6.0.16'));
    const problem = expect.stringContaining('it is Redis 6.0.16; reeve needs 6.2 or newer');

    await expect(find({ setting })).rejects.toMatchObject({ code: 'REDIS_PROGRAM_UNUSABLE', details: { problem } });
    await expect(find()).rejects.toMatchObject({ code: 'REDIS_NOT_FOUND', details: { problem } });
  });

  test('a private copy that no longer runs is passed over for one that does', async () => {
    await aProgram('redis-server', 'exit 127', join(home, 'cache/redis/copy-1/usr/bin'));
    const good = join(home, 'data/redis-program/copy-1/usr/bin');
    const program = await aProgram('redis-server', versioned('Redis server v=7.0.15'), good);

    expect(await find()).toMatchObject({ program, origin: 'private' });
  });
});

describe('when there is none', () => {
  test('without a package manager it stops with the exact command for this system', async () => {
    const osRelease = await readFile('/etc/os-release', 'utf8').catch(() => '');
    const expected = installCommand({ platform: process.platform, osRelease, isRoot });

    const refusal = await find().catch((error: unknown) => error);

    const otherwise = 'Install Redis 6.2 or newer, or Valkey, with the package manager of this system.';
    expect(refusal).toMatchObject({ code: 'REDIS_NOT_FOUND', next: expected?.text ?? otherwise });
    expect(refusal).toMatchObject({ message: expect.stringContaining('apt-get') });
    expect(await readdir(home)).toEqual(['bin']);
  });

  test.runIf(hasApt)('a package manager that fails is quoted, and leaves no half copy', async () => {
    for (const name of ['dpkg-deb', 'ldd']) await aProgram(name, 'exit 0');
    await aProgram('dpkg-query', 'exit 0');
    await aProgram('apt-get', 'echo "E: Failed to fetch: no route to the mirror" >&2; exit 100');

    const problem = expect.stringContaining('no route to the mirror');
    await expect(find()).rejects.toMatchObject({ code: 'REDIS_NOT_FOUND', details: { problem } });
    expect(await readdir(join(home, 'cache/redis'))).toEqual([]);
  });

  test('stops fetching when it is told to', async () => {
    for (const name of ['dpkg-deb', 'dpkg-query', 'ldd']) await aProgram(name, 'exit 0');
    await aProgram('apt-get', `: > ${join(home, 'asked')}; exec /bin/sleep 60`);
    const stop = new AbortController();

    const finding = find({ signal: stop.signal });
    const ended = finding.catch((error: unknown) => error);
    await until('apt-get runs', () => existsSync(join(home, 'asked')));
    stop.abort();

    expect(await ended).toMatchObject({ name: 'AbortError' });
    expect(await readdir(join(home, 'cache/redis'))).toEqual([]);
  });

  test.runIf(isRoot && hasApt && !existsSync('/run/systemd/system'))(
    'root has the package manager install one where no private copy can be made',
    async () => {
      const bin = join(home, 'bin');
      await aProgram('template', versioned('Redis server v=7.0.15'));
      const copy = `[ "$RUNLEVEL" = 1 ] && /bin/cp ${bin}/template ${bin}/redis-server`;
      await aProgram('apt-get', `case $1 in update) ;; install) ${copy} ;; *) exit 1 ;; esac`);

      expect(await find()).toMatchObject({ program: join(bin, 'redis-server'), origin: 'path' });
    },
  );
});

describe.runIf(hasApt)('fetching from the distribution', { timeout: 120_000 }, () => {
  test('unpacks a private copy that runs, and finds it again without fetching', async () => {
    const path = await pathWithoutRedis();

    const fetched = await find({ path });

    expect(fetched).toMatchObject({ origin: 'private', program: expect.stringContaining(join(home, 'cache/redis')) });
    expect(await readdir(join(home, 'cache/redis'))).toEqual(['copy-1']);
    expect(await find()).toEqual(fetched);
  });

  test('brings its own package lists where the system has none', async () => {
    const config = join(home, 'apt.conf');
    await writeFile(config, `Dir::State::Lists "${join(home, 'no-lists')}";\n`);

    const fetched = await find({ path: await pathWithoutRedis(), env: { ...process.env, APT_CONFIG: config } });

    expect(fetched).toMatchObject({ origin: 'private' });
    expect(await readdir(join(home, 'cache/redis'))).toEqual(['copy-1']);
  });

  test('two that fetch at the same time both get one that runs', async () => {
    const path = await pathWithoutRedis();

    const both = await Promise.all([find({ path }), find({ path })]);

    for (const each of both) expect(each).toMatchObject({ origin: 'private' });
    for (const name of await readdir(join(home, 'cache/redis'))) expect(name).toMatch(/^copy-[12]$/);
  });

  test('falls back to the data directory where the cache cannot be written', async () => {
    await writeFile(join(home, 'cache'), 'in the way');

    const fetched = await find({ path: await pathWithoutRedis() });

    expect(fetched.program).toContain(join(home, 'data/redis-program'));
  });

  test.runIf(isRoot)('needs no root', async () => {
    const nobody = 65534;
    await chmod(home, 0o755);
    await mkdir(join(home, 'cache'));
    await chown(join(home, 'cache'), nobody, nobody);
    const options = { dataDir: join(home, 'data'), cacheDir: join(home, 'cache'), path: await pathWithoutRedis() };
    await using child = runChild(
      `
      const { findRedisServer } = await import(${JSON.stringify(sourceUrl('redis/find-server.ts'))});
      const { systemClock } = await import(${JSON.stringify(sourceUrl('clock.ts'))});
      const { silentLog } = await import(${JSON.stringify(sourceUrl('log.ts'))});
      const options = { ...${JSON.stringify(options)}, alsoIn: [], clock: systemClock, log: silentLog };
      const found = await findRedisServer(options).catch((error) => ({ ...error, message: error.message }));
      console.log(JSON.stringify({ ...found, uid: process.getuid() }));
    `,
      { as: ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] },
    );

    expect(await child.next()).toMatchObject({ origin: 'private', uid: nobody });
  });
});

test('the program the tests run with is recent enough', async () => {
  expect((await findTestRedis()).version).toMatch(/^([7-9]|\d\d|6\.[2-9])/);
});
