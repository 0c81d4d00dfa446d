import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { reeve } from '../support/cli.ts';
import { startDaemon, type TestDaemon } from '../support/daemon.ts';
import { findTestRedis } from '../support/redis.ts';
import { isRunning, until } from '../support/until.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reeve-crash-'));
});
afterEach(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

/** Uses a connection of its own, as any client of the embedded Redis would. */
async function onRedis<T>(daemon: TestDaemon, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = await daemon.redisClient();
  client.on('error', () => {});
  try {
    return await use(client);
  } finally {
    client.disconnect();
  }
}

/** Writes, and waits until the append-only file is on the disk: what was acknowledged after that must survive. */
const writeDurably = (daemon: TestDaemon, value: string) =>
  onRedis(daemon, async (client) => {
    await client.set('asset:sync:last_commit', value);
    // The policy is once a second; the last flush must have begun after the write.
    await until('the write is on the disk', async () => {
      const [written, flushed] = await Promise.all([client.info('persistence'), client.config('GET', 'appendfsync')]);
      expect(flushed).toEqual(['appendfsync', 'everysec']);
      return /aof_pending_bio_fsync:0/.test(written) && /aof_buffer_length:0/.test(written);
    });
  });
const readBack = (daemon: TestDaemon) => onRedis(daemon, (client) => client.get('asset:sync:last_commit'));

const isReady = async (daemon: TestDaemon) => (await daemon.get('/readyz')).status === 200;

describe('kill -9 of the embedded Redis', () => {
  test('is mended: same address, nothing lost, and everyone is told', async () => {
    await using daemon = await startDaemon();
    await writeDurably(daemon, 'kept');
    const address = async () => {
      const { dependencies } = (await daemon.get('/readyz')).body as { dependencies: { address: string }[] };
      return dependencies[0]?.address;
    };
    const [before, first] = [await address(), await daemon.redisPid()];

    process.kill(first, 'SIGKILL');
    const restarted = await daemon.logged('redis restarted');
    await until('it is ready again', () => isReady(daemon));

    expect(await address()).toBe(before);
    expect(restarted.pid).not.toBe(first);
    expect(await readBack(daemon)).toBe('kept');
    const events = await until('the event is told', async () => {
      const { stdout } = await reeve(['events', '--json', 'event,payload'], { cwd: daemon.cwd });
      const { items } = JSON.parse(stdout) as { items: { event: string; payload: object }[] };
      return items.find(({ event }) => event === 'redis:restarted');
    });
    expect(events.payload).toMatchObject({ restarts: 1, why: 'signal SIGKILL' });
    expect((await daemon.get('/metrics')).body).toContain('reeve_redis_restarts 1');
  });

  test('does not cut off those who follow the events', async () => {
    await using daemon = await startDaemon();
    let following: { kill(signal: NodeJS.Signals): boolean } | undefined;
    let said = '';
    const followed = reeve(['events', '--follow', '--json'], {
      cwd: daemon.cwd,
      started: (child) => {
        following = child;
        child.stdout?.on('data', (chunk) => {
          said += chunk;
        });
      },
    });
    await until('it follows', () => said.includes('daemon:started'));

    process.kill(await daemon.redisPid(), 'SIGKILL');
    await until('the restart is followed', () => said.includes('redis:restarted'));
    following?.kill('SIGINT');
    expect((await followed).code).toBe(130);
  });

  test('ends the daemon with the reason when it keeps happening', async () => {
    const { program } = await findTestRedis();
    const { libraryPath = '' } = await findTestRedis();
    const broken = join(folder, 'broken');
    const server = join(folder, 'redis-server');
    await writeFile(
      server,
      `#!/bin/sh\nLD_LIBRARY_PATH='${libraryPath}'; export LD_LIBRARY_PATH
[ -e '${broken}' ] && { echo 'it is broken today'; exit 3; }\nexec '${program}' "$@"\n`,
      { mode: 0o755 },
    );
    await using daemon = await startDaemon({ cwd: folder, args: ['--redis-server', server] });

    await writeFile(broken, '');
    process.kill(await daemon.redisPid(), 'SIGKILL');

    expect(await daemon.exited).toBe(8);
    const { problem } = await daemon.logged('redis keeps dying');
    expect(problem).toContain('it is broken today');
  }, 90_000);
});

describe('kill -9 of the daemon', () => {
  test('leaves no process behind, and the next start finds everything', async () => {
    await using killed = await startDaemon({ cwd: folder });
    await writeDurably(killed, 'kept');
    const redis = await killed.redisPid();

    expect(await killed.stop('SIGKILL')).toBe('SIGKILL');
    await until('its Redis ended too', async () => !(await isRunning(redis)), 15_000);
    expect((await reeve(['status'], { cwd: folder, env: { REEVE_HTTP_PORT: '1' } })).code).toBe(8);

    await using next = await startDaemon({ cwd: folder });
    expect(await readBack(next)).toBe('kept');
    expect(await isReady(next)).toBe(true);
    expect(await next.stop()).toBe(0);
  });

  test('a start right after it does not wait for the old Redis to be gone by itself', async () => {
    await using killed = await startDaemon({ cwd: folder });
    await killed.stop('SIGKILL');

    await using next = await startDaemon({ cwd: folder });
    expect(await isReady(next)).toBe(true);
  });
});
