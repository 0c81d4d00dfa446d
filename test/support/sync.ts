import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { MANIFESTS } from '../../src/manifest-globs.ts';
import { type Connection, connectRedis } from '../../src/redis/connection.ts';
import { type Keyspace, keyspace } from '../../src/redis/keys.ts';
import type { Guards } from '../../src/registry/guards.ts';
import { createParsePool } from '../../src/registry/parse-pool.ts';
import { Registry } from '../../src/registry/registry.ts';
import { githubClient } from '../../src/sync/github-client.ts';
import { githubSource } from '../../src/sync/github-source.ts';
import type { RunRecord } from '../../src/sync/run-record.ts';
import type { Source } from '../../src/sync/source.ts';
import type { Asked } from '../../src/sync/source-runner.ts';
import { Sync } from '../../src/sync/sync.ts';
import type { GithubStandIn } from './github.ts';
import type { TestRedis } from './redis.ts';

/** A sync of one source into a real Redis. */
export interface SyncRoom extends AsyncDisposable {
  readonly sync: Sync;
  readonly registry: Registry;
  readonly connection: Connection;
  readonly keys: Keyspace;
  /** Asks for a sync and waits for its end. */
  run(asked?: Partial<Asked>): Promise<RunRecord>;
  /** Ids that readers see. */
  ids(): Promise<string[]>;
}

export interface SyncRoomOptions {
  readonly source: Source;
  readonly namespace?: string;
  readonly guards?: Guards;
  readonly include?: readonly string[];
  readonly clock?: typeof systemClock;
}

/** Deletions and rewrites are everyday business in most tests. */
const EASY: Guards = { massDelete: false, widening: false, historyRewrite: false };

export async function aSyncRoom(
  redis: Pick<TestRedis, 'options'>,
  { source, namespace, guards = EASY, include = MANIFESTS, clock = systemClock }: SyncRoomOptions,
): Promise<SyncRoom> {
  const connection = await connectTo(redis);
  const keys = keyspace({ mode: 'standalone', ...(namespace !== undefined && { namespace }) });
  const pool = createParsePool();
  const registry = new Registry({ connection, mode: 'standalone', namespace, pool, guards });
  const named = { name: 'main', namespace, source, include };
  const sync = new Sync({
    sources: [{ named, registry, connection, keys, pool, holder: 'test' }],
    clock,
    log: silentLog,
  });
  return {
    sync,
    registry,
    connection,
    keys,
    run: (asked = {}) => sync.ask('main', { trigger: 'manual', ...asked })[0]!.done,
    ids: async () => Object.keys(await connection.commands.hgetall(keys.assetIndex())).sort(),
    async [Symbol.asyncDispose]() {
      await sync.stop();
      await pool.close();
      await connection.stop();
    },
  };
}

export async function connectTo(redis: Pick<TestRedis, 'options'>): Promise<Connection> {
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'test', options: redis.options }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 10_000,
    connectTimeoutMs: 10_000,
    name: 'test',
  });
  await connection.start();
  return connection;
}

/** A source that asks the stand-in. */
export function sourceOf(
  github: GithubStandIn,
  {
    token = github.token,
    branch,
    clock = systemClock,
    timeoutMs,
  }: { token?: string | undefined; branch?: string; clock?: typeof systemClock; timeoutMs?: number } = {},
): Source {
  const client = githubClient({ apiUrl: github.url, login: { token }, source: github.name, fetch, clock, timeoutMs });
  return githubSource({ client, repo: github.name, branch, address: github.name });
}

/** A manifest that is in order. */
export const aManifest = (id: string, more = ''): string =>
  `id: ${id}\nversion: 1.0.0\ncategory: prompt\nname: The ${id}\ndescription: What ${id} does.\n${more}`;
