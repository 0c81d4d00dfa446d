import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import { serverFiles } from '../../src/redis/server-files.ts';
import { launch, type ServerProcess } from '../../src/redis/server-process.ts';
import type { RedisTarget } from '../../src/redis/target.ts';
import { findTestRedis, systemPath } from './redis.ts';
import { until } from './until.ts';

export interface TestCluster extends AsyncDisposable {
  readonly target: RedisTarget;
  readonly ports: readonly number[];
  flush(): Promise<void>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;
const MASTERS = 3;

/** Three masters on loopback ports, run by the daemon's own launcher; stop() ends and removes them. */
export async function startTestCluster(): Promise<TestCluster> {
  const program = await findTestRedis();
  const ports = await freePorts(MASTERS);
  const nodes = await Promise.all(ports.map((port) => startNode(program, port)));
  const stop = async () => {
    await Promise.all(nodes.map(({ process }) => process.end(2_000)));
    await Promise.all(nodes.map(({ dir }) => rm(dir, { recursive: true, force: true })));
  };
  try {
    await formCluster(ports);
  } catch (error) {
    await stop();
    throw error;
  }
  const target: RedisTarget = {
    kind: 'cluster',
    address: 'test cluster',
    nodes: ports.map((port) => ({ host: '127.0.0.1', port })),
    options: {},
  };
  const flush = () => each(ports, (redis) => redis.flushall());
  return { target, ports, flush, stop, [Symbol.asyncDispose]: stop };
}

async function startNode(program: Awaited<ReturnType<typeof findTestRedis>>, port: number) {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-cluster-'));
  const files = serverFiles(dir);
  const config = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${dir}`,
    'cluster-enabled yes',
    'cluster-config-file nodes.conf',
    'cluster-node-timeout 5000',
    'cluster-require-full-coverage yes',
    'save ""',
    'appendonly no',
  ];
  await writeFile(files.config, config.join('\n'));
  const process: ServerProcess = await launch({ program, files, path: systemPath, clock: systemClock });
  await until(`node ${port} answers`, () => ask(port, (redis) => redis.ping()).catch(() => undefined));
  return { dir, process };
}

/** Slots in three shares, then everyone is introduced to the first, and all must agree. */
async function formCluster(ports: readonly number[]): Promise<void> {
  const share = Math.ceil(SLOTS / ports.length);
  await Promise.all(
    ports.map((port, n) =>
      ask(port, async (redis) => {
        await redis.call('CLUSTER', 'ADDSLOTSRANGE', n * share, Math.min((n + 1) * share, SLOTS) - 1);
        await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', n + 1);
      }),
    ),
  );
  await ask(ports[0] as number, async (redis) => {
    for (const port of ports.slice(1)) await redis.call('CLUSTER', 'MEET', '127.0.0.1', port);
  });
  await until(
    'the cluster agrees',
    async () => {
      const states = await Promise.all(ports.map((port) => ask(port, (redis) => redis.cluster('INFO'))));
      return states.every((state) => /cluster_state:ok/.test(state) && /cluster_known_nodes:3/.test(state));
    },
    20_000,
  );
}

async function each(ports: readonly number[], work: (redis: Redis) => Promise<unknown>): Promise<void> {
  await Promise.all(ports.map((port) => ask(port, work)));
}

async function ask<T>(port: number, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ host: '127.0.0.1', port, retryStrategy: () => null, lazyConnect: true });
  redis.on('error', () => {});
  try {
    await redis.connect();
    return await work(redis);
  } finally {
    redis.disconnect();
  }
}

/** Cluster nodes also listen 10,000 above their port. All are held open until each is known, so that none comes twice. */
async function freePorts(count: number): Promise<number[]> {
  const servers: ReturnType<typeof createServer>[] = [];
  const ports: number[] = [];
  while (ports.length < count) {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
    servers.push(server);
    if (port < 55_000) ports.push(port);
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
