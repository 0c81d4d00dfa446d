import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { ReeveError } from '../../src/errors.ts';
import { silentLog } from '../../src/log.ts';
import { connectionOptions } from '../../src/redis/address.ts';
import type { RedisProgram } from '../../src/redis/find-server.ts';
import { type RedisServer, type RedisServerOptions, type RestartFacts, redisServer } from '../../src/redis/server.ts';
import { runChild, sourceUrl } from '../support/child.ts';
import { findTestRedis, startTestRedis, systemPath } from '../support/redis.ts';
import { isRunning, until } from '../support/until.ts';

let program: RedisProgram;
let parent: string;
let dir: string;
let made: RedisServer[];
beforeAll(async () => {
  program = await findTestRedis();
});
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'reeve-server-'));
  dir = join(parent, 'redis');
  made = [];
});
afterEach(async () => {
  await Promise.all(made.map((each) => each.stop()));
  await rm(parent, { recursive: true, force: true });
});

function aServer(more: Partial<RedisServerOptions> = {}): RedisServer {
  const find = async () => program;
  const server = redisServer({ find, dir, path: systemPath, clock: systemClock, log: silentLog, ...more });
  made.push(server);
  return server;
}

/** Runs commands on a connection of their own. */
async function on<T>(server: RedisServer, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(connectionOptions(server.address()));
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

const write = (server: RedisServer, value: string) => on(server, (client) => client.set('kept', value));
const read = (server: RedisServer) => on(server, (client) => client.get('kept'));

/** A program that is the real server until the file `broken` appears beside it. */
async function aBreakableProgram(): Promise<RedisProgram> {
  const file = join(parent, 'breakable');
  const fail = `[ -e ${parent}/broken ] && { echo 'it is broken today'; exit 3; }`;
  const script = `#!/bin/sh\n${fail}\nexec ${program.program} "$@"\n`;
  await writeFile(file, script, { mode: 0o755 });
  return { ...program, program: file };
}

describe('a started server', () => {
  test('answers only to its password', async () => {
    const server = aServer();
    await server.start();
    const stranger = new Redis({
      ...connectionOptions(server.address()),
      password: undefined,
      retryStrategy: () => null,
    });
    stranger.on('error', () => {});

    await expect(stranger.get('kept')).rejects.toThrow('NOAUTH');
    stranger.disconnect();
    expect(await on(server, (client) => client.ping())).toBe('PONG');
  });

  test('keeps everything on disk, evicts nothing and listens on no port', async () => {
    const server = aServer();
    await server.start();

    const flat = await on(server, (client) => client.config('GET', '*'));

    const setting = (name: string) => flat[flat.indexOf(name) + 1];
    expect(setting('appendonly')).toBe('yes');
    expect(setting('appendfsync')).toBe('everysec');
    expect(setting('maxmemory-policy')).toBe('noeviction');
    expect(setting('save')).toBe('');
    expect(setting('port')).toBe('0');
    expect(setting('protected-mode')).toBe('yes');
    expect(setting('dir')).toBe(dir);
    expect(server.address()).toMatchObject({ kind: 'socket', path: join(dir, 'redis.sock') });
  });

  test('lets no other user near its secrets, and none stands on its command line', async () => {
    const server = aServer();
    await server.start();
    const { password } = server.address();

    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    for (const name of ['password', 'redis.conf']) expect((await stat(join(dir, name))).mode & 0o777).toBe(0o600);
    expect(password.length).toBeGreaterThan(40);
    const commandLine = await readFile(`/proc/${server.pid()}/cmdline`, 'utf8').catch(() => '');
    expect(commandLine).not.toContain(password);
  });

  test('falls back to a loopback port where the path is too long for a socket', async () => {
    const server = aServer({ dir: join(parent, 'x'.repeat(110)) });
    await server.start();

    expect(server.address()).toMatchObject({ kind: 'tcp', host: '127.0.0.1', port: expect.any(Number) });
    expect(await on(server, (client) => client.ping())).toBe('PONG');
  });

  test('is ready only when it has loaded all it had', async () => {
    const server = aServer();
    await server.start();
    const fill = "for i = 1, 300000 do redis.call('SET', i, i) end";
    await on(server, (client) => client.eval(fill, 0));
    await server.stop();

    await server.start();

    expect(await on(server, (client) => client.dbsize())).toBe(300_000);
  });

  test('works in a directory whose name has spaces and quotes', async () => {
    const server = aServer({ dir: join(parent, `it's a "dir" \\ ü`) });
    await server.start();

    expect(await on(server, (client) => client.ping())).toBe('PONG');
  });

  test('has no address before its first start', () => {
    expect(() => aServer().address()).toThrow('has not been started');
    expect(aServer().pid()).toBeUndefined();
  });
});

describe('stopping', () => {
  test('leaves no process and no socket, and keeps data and password for the next start', async () => {
    const server = aServer();
    await server.start();
    const { password } = server.address();
    const pid = server.pid()!;
    await write(server, 'before the stop');

    await server.stop();

    expect(await isRunning(pid)).toBe(false);
    expect(server.pid()).toBeUndefined();
    expect(await readdir(dir)).not.toContain('redis.sock');
    const next = aServer();
    await next.start();
    expect(next.address().password).toBe(password);
    expect(await read(next)).toBe('before the stop');
  });

  test('forces a server that does not react', async () => {
    const server = aServer({ graceMs: 50 });
    await server.start();
    const pid = server.pid()!;
    process.kill(pid, 'SIGSTOP');

    await server.stop();

    expect(await isRunning(pid)).toBe(false);
    expect(await readdir(dir)).not.toContain('redis.sock');
  });

  test('starts and stops that cross end as the last one says, with never two servers', async () => {
    const server = aServer();
    const pids = new Set<number>();
    const crossed = [];
    for (let round = 0; round < 5; round++) {
      crossed.push(
        // A start that is given up for a stop fails; that it leaves nothing behind is what counts.
        server.start().then(
          () => pids.add(server.pid()!),
          () => {},
        ),
        server.stop(),
        server.stop(),
      );
    }
    crossed.push(server.start(), server.start());
    await Promise.all(crossed);

    const last = server.pid()!;
    for (const pid of pids) expect(await isRunning(pid)).toBe(pid === last);
    expect(await on(server, (client) => client.ping())).toBe('PONG');
    await server.stop();
    expect(await isRunning(last)).toBe(false);
  });

  test('in the middle of a restart leaves nothing behind', async () => {
    const server = aServer({ find: aBreakableProgram });
    await server.start();
    await writeFile(join(parent, 'broken'), '');
    process.kill(server.pid()!, 'SIGKILL');
    await until('the broken program was tried', async () => (await logText()).includes('it is broken today'));

    await server.stop();

    expect(server.pid()).toBeUndefined();
    expect(await readdir(dir)).not.toContain('redis.sock');
  });
});

const logText = () => readFile(join(dir, 'redis.log'), 'utf8').catch(() => '');

describe('a server that dies', () => {
  test('is restarted at the same address with what was written', async () => {
    const restarted = Promise.withResolvers<RestartFacts>();
    const server = aServer({ onRestart: restarted.resolve });
    await server.start();
    const address = server.address();
    const client = new Redis({ ...connectionOptions(address), maxRetriesPerRequest: null });
    client.on('error', () => {});
    await client.set('kept', 'before the crash');
    await until('the append-only file is on disk', async () => /aof_pending_bio_fsync:0/.test(await client.info()));
    const pid = server.pid()!;

    process.kill(pid, 'SIGKILL');
    const facts = await restarted.promise;

    expect(facts).toMatchObject({ restarts: 1, how: 'signal SIGKILL' });
    expect(server.restarts()).toBe(1);
    expect(server.pid()).not.toBe(pid);
    expect(server.address()).toEqual(address);
    expect(await client.get('kept')).toBe('before the crash');
    client.disconnect();
  });

  test('keeps its port as well', async () => {
    const restarted = Promise.withResolvers<RestartFacts>();
    const server = aServer({ listen: { port: 0 }, onRestart: restarted.resolve });
    await server.start();
    const address = server.address();

    process.kill(server.pid()!, 'SIGKILL');
    await restarted.promise;

    expect(server.address()).toEqual(address);
    expect(await on(server, (client) => client.ping())).toBe('PONG');
  });

  test('again and again is given up, with its last words', async () => {
    const fatal = Promise.withResolvers<ReeveError>();
    const server = aServer({ find: aBreakableProgram, onFatal: fatal.resolve });
    await server.start();
    await writeFile(join(parent, 'broken'), '');

    process.kill(server.pid()!, 'SIGKILL');
    const error = await fatal.promise;

    expect(error).toMatchObject({ code: 'REDIS_START_FAILED', details: { log: join(dir, 'redis.log') } });
    expect(error.message).toContain('it died 5 times in a row, last by it ended at once: exit code 3');
    expect(error.message).toContain('it is broken today');
    expect(server.pid()).toBeUndefined();
    await server.stop();
  });

  test('in the middle of a write comes back with all but that write', async () => {
    const server = aServer();
    await server.start();
    await write(server, 'whole');
    await server.stop();
    // Redis 7 keeps a folder of files and appends to the .incr one; Redis 6 has a single file.
    const names = await readdir(dir, { recursive: true });
    const tail = names.find((name) => name.endsWith('.incr.aof')) ?? 'appendonly.aof';
    await appendFile(join(dir, tail), '*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$6\r\nbro');

    const next = aServer();
    await next.start();

    expect(await read(next)).toBe('whole');
  });
});

describe('a start that fails', () => {
  test('says what the program said, and leaves nothing running', async () => {
    await writeFile(join(parent, 'broken'), '');
    const server = aServer({ find: aBreakableProgram });

    const refusal = (await server.start().catch((error: unknown) => error)) as ReeveError;

    expect(refusal).toMatchObject({ code: 'REDIS_START_FAILED' });
    expect(refusal.message).toContain('it is broken today');
    expect(server.pid()).toBeUndefined();
  });

  test('at a port that another program has says so', async () => {
    const strangers = new Set<Socket>();
    const taken = createServer((socket) => strangers.add(socket));
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;

    await expect(aServer({ listen: { port } }).start()).rejects.toThrow('Address already in use');

    for (const each of strangers) each.destroy();
    await new Promise((resolve) => taken.close(resolve));
  });

  test('can be tried again', async () => {
    await writeFile(join(parent, 'broken'), '');
    const server = aServer({ find: aBreakableProgram });
    await expect(server.start()).rejects.toMatchObject({ code: 'REDIS_START_FAILED' });
    await rm(join(parent, 'broken'));

    await server.start();

    expect(await on(server, (client) => client.ping())).toBe('PONG');
  });
});

/** A daemon in a process of its own that runs a server in `dir`, tells its pid, and stays until killed. */
const aDaemon = (path: string) =>
  runChild(`
    const { redisServer } = await import(${JSON.stringify(sourceUrl('redis/server.ts'))});
    const { systemClock } = await import(${JSON.stringify(sourceUrl('clock.ts'))});
    const { silentLog } = await import(${JSON.stringify(sourceUrl('log.ts'))});
    const { Redis } = await import('ioredis');
    const find = async () => (${JSON.stringify(program)});
    const options = { find, dir: ${JSON.stringify(dir)}, path: ${JSON.stringify(path)} };
    const server = redisServer({ ...options, clock: systemClock, log: silentLog });
    await server.start();
    const client = new Redis(server.address());
    await client.set('kept', 'before the daemon was killed');
    console.log(JSON.stringify({ pid: server.pid() }));
  `);

describe('a daemon killed with -9', () => {
  test.each([
    ['where setpriv is', systemPath],
    ['where it is not', ''],
  ])('leaves no orphan %s, and the data for the next', async (_, path) => {
    await using daemon = aDaemon(path);
    const { pid } = (await daemon.next()) as { pid: number };
    expect(await isRunning(pid)).toBe(true);

    await daemon.kill('SIGKILL');

    await until('the orphan is gone', async () => !(await isRunning(pid)), 5_000);
    const next = aServer();
    await next.start();
    expect(await read(next)).toBe('before the daemon was killed');
  });

  test('leaves an orphan that hangs to the next daemon, which ends it', async () => {
    await using daemon = aDaemon(systemPath);
    const { pid } = (await daemon.next()) as { pid: number };
    process.kill(pid, 'SIGSTOP');
    await daemon.kill('SIGKILL');
    expect(await isRunning(pid)).toBe(true);

    const next = aServer({ graceMs: 200 });
    await next.start();

    expect(await isRunning(pid)).toBe(false);
    expect(next.pid()).not.toBe(pid);
    expect(await read(next)).toBe('before the daemon was killed');
  });

  test('leaves a pid file that may name an innocent by now, who is left alone', async () => {
    const server = aServer();
    await server.start();
    await server.stop();
    await using innocent = runChild('console.log(1); setInterval(() => {}, 1_000)');
    await innocent.next();
    await writeFile(join(dir, 'redis.pid'), String(innocent.pid));

    await server.start();

    expect(await isRunning(innocent.pid)).toBe(true);
  });
});

test('starts with a short log when the last one had grown big', async () => {
  const server = aServer();
  await server.start();
  await server.stop();
  await writeFile(join(dir, 'redis.log'), 'x'.repeat(6 * 1024 * 1024));

  await server.start();

  expect((await stat(join(dir, 'redis.log'))).size).toBeLessThan(100_000);
  expect((await stat(join(dir, 'redis.log.1'))).size).toBe(6 * 1024 * 1024);
});

test('tests get a server each, empty and gone afterwards', async () => {
  const one = await startTestRedis();
  await using other = await startTestRedis();
  await one.client().set('kept', 'here');

  expect(await other.client().get('kept')).toBeNull();
  await one.flush();
  expect(await one.client().dbsize()).toBe(0);
  await one.stop();
  expect(one.address).toMatchObject({ kind: 'socket' });
});
