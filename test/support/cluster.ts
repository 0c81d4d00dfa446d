import { Redis } from 'ioredis';
import type { RedisTarget } from '../../src/redis/target.ts';
import { freePort, type RedisProcess, runRedis } from './redis-process.ts';
import { until } from './until.ts';

export interface TestCluster extends AsyncDisposable {
  readonly nodes: readonly RedisProcess[];
  readonly target: RedisTarget;
  /** A client of the node that serves a key. */
  nodeOf(key: string): Promise<RedisProcess>;
  /** Empties every node. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;

/** A real cluster of masters, each with its share of the slots. No replicas: what one node holds is gone while it is down. */
export async function startCluster(count = 3): Promise<TestCluster> {
  const nodes = await Promise.all(Array.from({ length: count }, () => aNode()));
  const clients = nodes.map(({ port }) => new Redis(port, '127.0.0.1'));
  const share = (at: number) => Math.floor((SLOTS * at) / count);
  await Promise.all(
    clients.map(async (client, at) => {
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
      await client.call('CLUSTER', 'ADDSLOTSRANGE', share(at), share(at + 1) - 1);
    }),
  );
  for (const { port, busPort } of nodes.slice(1)) await clients[0]!.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  for (const client of clients) {
    await until('every node sees the whole cluster', async () => {
      const info = await client.cluster('INFO');
      return /cluster_state:ok/.test(info) && info.includes(`cluster_known_nodes:${count}`);
    });
  }
  const slotOf = (key: string) => clients[0]!.cluster('KEYSLOT', key);
  const stop = async () => {
    for (const client of clients) client.disconnect();
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
  };
  return {
    nodes,
    target: {
      kind: 'cluster',
      address: `cluster ${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      nodes: nodes.map(({ port }) => ({ host: '127.0.0.1', port })),
      options: { redisOptions: {} },
    },
    nodeOf: async (key) => {
      const slot = await slotOf(key);
      return nodes.find((_, at) => slot < share(at + 1))!;
    },
    flush: async () => {
      await Promise.all(clients.map((client) => client.flushall()));
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function aNode(): Promise<RedisProcess & { readonly busPort: number }> {
  const busPort = await freePort();
  const node = await runRedis({
    'cluster-enabled': 'yes',
    'cluster-node-timeout': 2_000,
    'cluster-port': busPort,
    appendonly: 'yes',
    appendfsync: 'always',
  });
  return Object.assign(node, { busPort });
}
