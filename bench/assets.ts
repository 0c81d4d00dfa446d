import { systemClock } from '../src/clock.ts';
import { silentLog } from '../src/log.ts';
import { operations } from '../src/operations/index.ts';
import { type Context, invoke, type Operation } from '../src/operations/operation.ts';
import type { Rooms } from '../src/operations/rooms.ts';
import { type Connection, connectRedis } from '../src/redis/connection.ts';
import { keyspace } from '../src/redis/keys.ts';
import { blobSha } from '../src/registry/asset.ts';
import { Library } from '../src/registry/library.ts';
import { createParsePool } from '../src/registry/parse-pool.ts';
import { configFingerprint, Registry } from '../src/registry/registry.ts';
import { startTestRedis, type TestRedis } from '../test/support/redis.ts';
import { assetsSync } from './assets-sync.ts';
import type { Bench, Metric } from './harness.ts';

const ASSETS = 10_000;
const MATCHES = 200;
const PAGE = 50;
/** A hiccup of the machine or a collection of garbage comes about once in a hundred: only many samples, many times over, tell
 * the work's 99th percentile from theirs. */
const SAMPLES = 1_000;
const READING_ROUNDS = 9;
const WARM_UP = 200;

/** What a sync costs, and what readers wait. */
export const assets: Bench = {
  name: 'assets',
  summary: 'requests and time of a sync of 10,000 manifests, pages and searches of them, each beside the same by hand',
  run: async ({ rounds }) => [...(await assetsSync(rounds)), ...(await reading(Math.max(rounds, READING_ROUNDS)))],
};

/** Reading: a page and a search through the whole operation, beside reading the same index entries by hand. */
async function reading(rounds: number): Promise<Metric[]> {
  await using redis = await startTestRedis();
  const connection = await connected(redis);
  const pool = createParsePool();
  try {
    const registry = new Registry({ connection, mode: 'standalone', pool });
    await fill(registry, pool);
    const library = new Library([{ name: 'bench', registry }]);
    const pages = new Figures();
    const searches = new Figures();
    for (let round = 0; round < rounds; round++) {
      await measure(pages, pageOf(library), byHand(connection, PAGE));
      await measure(searches, searchOf(library), byHand(connection, MATCHES));
    }
    return [
      pages.metric('GET /assets, page of 50 from 10,000, p99', 3),
      searches.metric('search with 200 matches of 10,000, p99', 5),
    ];
  } finally {
    await pool.close();
    await connection.stop();
  }
}

type Sample = (at: number) => Promise<unknown>;

const pageOf =
  (library: Library): Sample =>
  async (at) => {
    const cursor = Buffer.from(`0:${idOf((at * 7919) % (ASSETS - 2 * PAGE))}`).toString('base64url');
    return asked('assets.list', library, { limit: PAGE, cursor });
  };

const searchOf =
  (library: Library): Sample =>
  async (at) =>
    asked('assets.search', library, { query: `group${at % (ASSETS / MATCHES)}x`, limit: MATCHES });

/** What a client would do who knew the ids: one HMGET, JSON in, JSON out. */
const byHand = (connection: Connection, count: number): Sample => {
  const index = keyspace({ mode: 'standalone' }).assetIndex();
  return async (at) => {
    const from = (at * 7919) % (ASSETS - count);
    const ids = Array.from({ length: count }, (_, offset) => idOf(from + offset));
    const values = await connection.commands.hmget(index, ...ids);
    return JSON.stringify({ items: values.map((json) => JSON.parse(json ?? 'null') as unknown) });
  };
};

async function asked(name: string, library: Library, input: object): Promise<string> {
  const operation = operations.find((one) => one.name === name) as Operation;
  const rooms = { library, explain: () => undefined } as Partial<Rooms> as Rooms;
  const caller = { id: 'bench', access: new Set(['read'] as const) };
  const context: Context = { rooms, caller, signal: new AbortController().signal, operations };
  return JSON.stringify(await invoke(operation, context, input));
}

/** The two take turns, so that whatever else the machine does meets both. */
async function measure(figures: Figures, ours: Sample, floor: Sample): Promise<void> {
  const [mine, base]: [number[], number[]] = [[], []];
  for (let at = 0; at < SAMPLES + WARM_UP; at++) {
    const [one, other] = [await timed(() => ours(at)), await timed(() => floor(at))];
    if (at < WARM_UP) continue;
    mine.push(one);
    base.push(other);
  }
  figures.add(p99(mine), p99(base));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

class Figures {
  readonly #ours: number[] = [];
  readonly #floors: number[] = [];

  add(ours: number, floor: number): void {
    this.#ours.push(ours);
    this.#floors.push(floor);
  }

  metric(name: string, most: number): Metric {
    const ratio = median(this.#ours.map((ours, at) => ours / this.#floors[at]!));
    return {
      name,
      value: rounded(median(this.#ours)),
      unit: 'ms',
      floor: rounded(median(this.#floors)),
      ratio: rounded(ratio),
      bar: `at most ${most} times HMGET and JSON by hand`,
      ok: ratio <= most,
    };
  }
}

const p99 = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? 0;
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const rounded = (value: number): number => Math.round(value * 1000) / 1000;
const idOf = (at: number): string => `asset_${String(at).padStart(5, '0')}`;

const manifest = (at: number): string => `id: ${idOf(at)}
version: 1.0.0
category: ${['tool', 'prompt', 'skill'][at % 3]}
name: Asset number ${at}
description: Does the thing that assets of group${at % (ASSETS / MATCHES)}x do, reliably and with care for those who wait.
author: bench
tags: [bench, group]
`;

async function fill(registry: Registry, pool: ReturnType<typeof createParsePool>): Promise<void> {
  const files = Array.from({ length: ASSETS }, (_, at) => {
    const bytes = Buffer.from(manifest(at));
    return { path: `tools/${idOf(at)}/manifest.yaml`, sha: blobSha(bytes), bytes };
  });
  const parsed = await pool.parse(files);
  const known = await registry.known();
  const entries = new Map(
    files.map(({ path, sha, bytes }) => [path, { sha, kind: 'file', size: bytes.length } as const]),
  );
  const plan = await registry.plan(
    known,
    { commit: '1'.repeat(40), complete: true, entries },
    new Map(files.map(({ path }, at) => [path, parsed[at]!])),
  );
  await registry.publish({
    plan,
    source: 'bench',
    previousCommit: undefined,
    fence: 1,
    configFingerprint: configFingerprint({}),
  });
}

async function connected(redis: TestRedis): Promise<Connection> {
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'bench', options: redis.options }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 20_000,
    connectTimeoutMs: 5_000,
    name: 'bench',
  });
  await connection.start();
  return connection;
}
