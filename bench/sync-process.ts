import type { RedisOptions } from 'ioredis';
import type { AssetRooms } from '../src/asset-rooms.ts';
import { systemClock } from '../src/clock.ts';
import { silentLog } from '../src/log.ts';
import { longestStillness, type Stillness } from './stillness.ts';

/** Where to sync from and to. */
export interface SyncPlace {
  readonly redis: RedisOptions;
  readonly url: string;
  readonly token: string;
  readonly name: string;
}

/** How one sync went in a process that does nothing else. */
export interface SyncFigures {
  readonly outcome: string;
  readonly problem?: unknown;
  readonly ms: number;
  /** Longest that the event loop did not turn. */
  readonly loop: Stillness;
  readonly rssMb: number;
}

/** What is measured is what runs in production: the built files, put together as the daemon does it. */
const built = async <T>(file: string) => (await import(new URL(`../dist/${file}.js`, import.meta.url).href)) as T;

/** A sync in a process of its own, as in a daemon: its memory and its event loop are nobody else's. */
let rooms: AssetRooms | undefined;
process.on('message', (order: { open?: SyncPlace; run?: true }) => {
  void (async () => {
    if (order.open) {
      rooms = await open(order.open);
      process.send!({});
    }
    if (order.run && rooms) process.send!(await measured(rooms));
  })();
});
process.on('disconnect', () => process.exit(0));
process.send!({});

async function open({ redis, url, token, name }: SyncPlace): Promise<AssetRooms> {
  const { createAssetRooms } = await built<typeof import('../src/asset-rooms.ts')>('asset-rooms');
  const { connectRedis } = await built<typeof import('../src/redis/connection.ts')>('redis/connection');
  const { loadConfig } = await built<typeof import('../src/config.ts')>('config');
  const { keepHeapSmall } = await built<typeof import('../src/heap.ts')>('heap');
  keepHeapSmall();
  const env = { GITHUB_REPO: name, GITHUB_TOKEN: token, GITHUB_API_URL: url };
  const { config } = loadConfig({ env });
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'bench', options: redis }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 10_000,
    connectTimeoutMs: 10_000,
    name: 'bench',
  });
  await connection.start();
  const shared = { config, connection, clock: systemClock, log: silentLog, fetch, env };
  return createAssetRooms({ ...shared, isDirNamed: true, mode: 'standalone', holder: 'bench' });
}

const WEIGH_MS = 2;

async function measured({ sync }: AssetRooms): Promise<SyncFigures> {
  const over = new AbortController();
  let rss = 0;
  const watching = longestStillness({ pids: [process.pid] }, over.signal);
  const weighing = (async () => {
    while (!over.signal.aborted) {
      await systemClock.sleep(WEIGH_MS, over.signal);
      rss = Math.max(rss, process.memoryUsage.rss());
    }
  })();
  const began = performance.now();
  const { outcome, problem } = await sync.ask('github', { trigger: 'manual' })[0]!.done;
  const ms = performance.now() - began;
  over.abort();
  await weighing;
  return { outcome, problem, ms, loop: await watching, rssMb: rss / 2 ** 20 };
}
