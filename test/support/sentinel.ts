import { Redis } from 'ioredis';
import { type RedisProcess, runRedis } from './redis-process.ts';
import { until } from './until.ts';

export interface TestSentinels extends AsyncDisposable {
  readonly master: RedisProcess;
  readonly replica: RedisProcess;
  /** For redis.url: the Sentinels, not the servers. */
  readonly url: string;
  readonly name: string;
}

/** A master, a replica, and three Sentinels that agree by two. */
export async function startSentinels(): Promise<TestSentinels> {
  const name = 'estate';
  const password = 'sesame';
  const login = { requirepass: password, masterauth: password };
  const master = await runRedis(login);
  const replica = await runRedis(login, { lines: [`replicaof 127.0.0.1 ${master.port}`] });
  const sentinels = await Promise.all([1, 2, 3].map(() => aSentinel(name, master.port, password)));
  await Promise.all(sentinels.map(({ port }) => untilWatching(name, port)));
  return {
    master,
    replica,
    name,
    url: `redis://:${password}@${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    [Symbol.asyncDispose]: async () => {
      for (const process of [...sentinels, replica, master]) await process[Symbol.asyncDispose]();
    },
  };
}

const aSentinel = (name: string, masterPort: number, password: string): Promise<RedisProcess> =>
  runRedis(
    {},
    {
      sentinel: true,
      lines: [
        `sentinel monitor ${name} 127.0.0.1 ${masterPort} 2`,
        `sentinel auth-pass ${name} ${password}`,
        `sentinel down-after-milliseconds ${name} 1000`,
        `sentinel failover-timeout ${name} 5000`,
      ],
    },
  );

/** Sentinels find the replica and one another through the master; before that they could not fail over. */
async function untilWatching(name: string, port: number): Promise<void> {
  const client = new Redis(port, '127.0.0.1');
  try {
    await until('the sentinels know one another and the replica', async () => {
      const flat = (await client.call('SENTINEL', 'MASTER', name)) as string[] | Record<string, string>;
      const fields = Array.isArray(flat) ? pairs(flat) : flat;
      return fields['num-other-sentinels'] === '2' && fields['num-slaves'] === '1';
    });
  } finally {
    client.disconnect();
  }
}

const pairs = (flat: readonly string[]): Record<string, string> =>
  Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]!]] : [])));
