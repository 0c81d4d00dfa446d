import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { systemClock as clock } from '../../../src/clock.ts';
import { type LogLine, startDaemon, type TestDaemon } from '../daemon.ts';
import { FORMAT_A } from '../prd-db.ts';
import { DURABLE, freePort, type RedisProcess, runRedis } from '../redis-process.ts';
import type { ChaosPlan } from './plan.ts';

/** What the agents live in: a real Redis with its append-only file, the real daemon, and a task file. All may be killed. */
export interface World extends AsyncDisposable {
  readonly url: string;
  readonly cwd: string;
  readonly prd: string;
  readonly redis: RedisProcess;
  readonly daemon: TestDaemon;
  /** A client that loses what it asked when the server dies, as redis-cli does. */
  plainClient(): Redis;
  /** Lines with this sentence, of all daemons that there were. */
  logged(sentence: string): LogLine[];
  killDaemon(): Promise<void>;
  killRedis(): Promise<void>;
}

/** Short trust in those who cannot send heartbeats, and attempts without end: what is asked here is that nothing is lost. */
const settings = (redis: number, prd: string) => `
redis: { url: "redis://127.0.0.1:${redis}" }
prd: { path: ${JSON.stringify(prd)} }
sync: { schedule: "off" }
tasks: { maxAttempts: 1000, retrySeconds: 0.05, rawGraceSeconds: 3, rawLeaseSeconds: 6 }
`;

export async function aWorld({ rows }: Pick<ChaosPlan, 'rows'>): Promise<World> {
  const cwd = await mkdtemp(join(tmpdir(), 'reeve-chaos-'));
  const prd = join(cwd, 'prd.db');
  fill(prd, rows);
  const redis = await runRedis(DURABLE);
  await writeFile(join(cwd, 'reeve.yaml'), settings(redis.port, prd));
  const port = await freePort();
  const daemons: TestDaemon[] = [];
  const start = async () => {
    const started = await startDaemon({ cwd, port });
    daemons.push(started);
    return started;
  };
  let daemon = await start();
  const clients = new Set<Redis>();
  return {
    url: `http://127.0.0.1:${port}/api/v1`,
    cwd,
    prd,
    redis,
    get daemon() {
      return daemon;
    },
    plainClient: () => {
      const client = new Redis({
        port: redis.port,
        host: '127.0.0.1',
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false,
        retryStrategy: () => 50,
      });
      client.on('error', () => {});
      clients.add(client);
      return client;
    },
    logged: (sentence) => daemons.flatMap(({ logs }) => logs.filter(({ msg }) => msg === sentence)),
    killDaemon: async () => {
      await daemon.stop('SIGKILL');
      daemon = await start();
    },
    killRedis: async () => {
      await redis.crash();
      await clock.sleep(200);
      await redis.start();
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.disconnect();
      await daemon[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
      await rm(cwd, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

function fill(path: string, rows: ChaosPlan['rows']): void {
  const file = new Database(path);
  file.exec(FORMAT_A);
  file.transaction(() => {
    for (const row of rows) {
      const names = Object.keys(row);
      file
        .prepare(`insert into tasks (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`)
        .run(...Object.values(row));
    }
  })();
  file.close();
}
