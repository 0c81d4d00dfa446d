import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { type Connection, connectRedis } from '../../src/redis/connection.ts';
import { redisTarget } from '../../src/redis/target.ts';
import { STAGE_ABOVE } from '../../src/registry/publish.ts';
import { findTestRedis, type TestRedis } from '../support/redis.ts';
import { aRegistry, type Files, tool } from '../support/registry.ts';
import { undeclaredKeys } from '../support/undeclared-keys.ts';
import { until } from '../support/until.ts';

/** One server that has all slots: it refuses, as every Cluster does, a transaction across two of them. */
let redis: Redis;
let connection: Connection;
let stop: () => Promise<void>;
beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-cluster-'));
  const port = await freePort();
  const { program, libraryPath } = await findTestRedis();
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--cluster-announce-ip',
    '127.0.0.1',
    '--cluster-enabled',
    'yes',
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const child = spawn(program, args, {
    stdio: 'ignore',
    env: { ...(libraryPath && { LD_LIBRARY_PATH: libraryPath }) },
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  redis = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await redis.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
  await until('the cluster is whole', async () => String(await redis.cluster('INFO')).includes('cluster_state:ok'));
  const target = redisTarget({ url: `redis://127.0.0.1:${port}`, mode: 'cluster' } as Parameters<
    typeof redisTarget
  >[0]);
  connection = connectRedis({
    target: () => target,
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 10_000,
    connectTimeoutMs: 10_000,
    name: 'test',
  });
  await connection.start();
  stop = async () => {
    await connection.stop();
    redis.disconnect();
    child.kill('SIGTERM');
    await exited;
    await rm(dir, { recursive: true, force: true });
  };
});
afterAll(() => stop());

test.each([undefined, 'team_a'])('publishes, finds and repairs under one hash tag, namespace %s', async (namespace) => {
  const unused = {} as TestRedis;
  const room = await aRegistry(unused, { mode: 'cluster', connection, ...(namespace && { namespace }) });
  const head = namespace ? `{asset:${namespace}}` : '{asset}';
  const many = Object.assign({}, ...Array.from({ length: STAGE_ABOVE + 5 }, (_, at) => tool(`t${at}`))) as Files;
  await room.sync('c1', { ...tool('a'), ...tool('b') });
  expect(await room.sync('c2', { ...tool('a'), ...tool('b'), ...many })).toMatchObject({ outcome: 'published' });
  expect(await redis.hlen(`${head}:index`)).toBe(STAGE_ABOVE + 7);
  expect(await room.registry.catalogue.search('t1', { limit: 3 })).toMatchObject({ items: [{ id: 't1' }, {}, {}] });
  await redis.del(`${head}:metadata:a`);
  expect(await room.registry.repair(await room.nextFence())).toMatchObject({ outcome: 'repaired', ids: ['a'] });
  expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  expect(await undeclaredKeys(redis, { mode: 'cluster' }, { mode: 'cluster', namespace: 'team_a' })).toEqual([]);
  await room[Symbol.asyncDispose]();
});

/** Its bus needs the port ten thousand above, so it must be low enough. */
async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    if (port < 55_000) return port;
  }
}
