import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { systemClock } from '../src/clock.ts';
import { fieldsOf } from '../src/registry/asset.ts';
import { MANIFEST } from '../src/registry/manifest-schema.ts';
import { startTestRedis, type TestRedis } from '../test/support/redis.ts';
import type { Metric } from './harness.ts';
import { longestStillness, type Stillness, worstOf } from './stillness.ts';
import type { SyncFigures, SyncPlace } from './sync-process.ts';

const run = promisify(execFile);

const MANIFESTS = 10_000;
const CHANGED = 60;

/** What a sync asks for, and how long the first one of ten thousand manifests takes beside doing just that by hand. */
export async function assetsSync(rounds: number): Promise<Metric[]> {
  await using github = await githubProcess();
  const firsts: First[] = [];
  const floors: number[] = [];
  let requests: Requests | undefined;
  for (let round = 0; round < rounds; round++) {
    await using redis = await startTestRedis();
    await github.tell({ commit: commitOf(MANIFESTS, (at) => at, 1, `round ${round}`) });
    floors.push(await floor(github.dir, redis));
    await redis.flush();
    const { first, ...counted } = await syncs(github, redis);
    firsts.push(first);
    requests = counted;
  }
  const took = median(firsts.map(({ ms }) => ms));
  const base = median(floors);
  const ratio = took / base;
  const { unchanged, unchangedQuota, changed, initial } = requests!;
  const mostChanged = 2 + Math.ceil(CHANGED / 25);
  const atMost = (name: string, value: number, unit: string, most: number): Metric => ({
    name,
    value,
    unit,
    bar: `at most ${most}`,
    ok: value <= most,
  });
  return [
    atMost('requests of an unchanged poll', unchanged, 'requests', 1),
    atMost('quota of an unchanged poll', unchangedQuota, 'units', 0),
    atMost(`requests for ${CHANGED} changed of ${MANIFESTS}`, changed, 'requests', mostChanged),
    atMost(`requests of the first sync of ${MANIFESTS}`, initial, 'requests', 4),
    {
      name: `first sync of ${MANIFESTS} manifests`,
      value: round(took),
      unit: 'ms',
      floor: round(base),
      ratio: round(ratio, 2),
      bar: 'at most 3 × the floor; goal 1.5 ×',
      ok: ratio <= 3,
    },
    never('event loop, longest without a turn', worstOf(firsts.map(({ loop }) => loop)), 100),
    never('Redis, longest without an answer', worstOf(firsts.map(({ redis }) => redis)), 50),
    atMost('peak memory of the process (worst round)', round(Math.max(...firsts.map(({ rssMb }) => rssMb))), 'MB', 400),
  ];
}

/** Never is judged by the worst of all rounds; what the machine took away for something else is told, and not counted. */
const never = (name: string, { ownMs, wallMs }: Stillness, most: number): Metric => ({
  name: `${name} (worst of all syncs)`,
  value: round(ownMs),
  unit: 'ms',
  bar: `at most ${most}; with waiting for a processor it was ${round(wallMs)}`,
  ok: ownMs <= most,
});

/** The time is that of the first sync; the rest is the worst of all syncs of a round. */
interface First {
  readonly ms: number;
  readonly loop: Stillness;
  readonly redis: Stillness;
  readonly rssMb: number;
}

interface Requests {
  readonly initial: number;
  readonly unchanged: number;
  readonly unchangedQuota: number;
  readonly changed: number;
}

/** The first sync, one with nothing new, a few changes, and at last the hardest: every asset replaced by another. */
async function syncs(github: GithubProcess, redis: TestRedis): Promise<Requests & { readonly first: First }> {
  await using child = await start(new URL('./sync-process.ts', import.meta.url), await daemonFlags());
  const { url, token, name } = github;
  await child.tell({ open: { redis: redis.options, url, token, name } satisfies SyncPlace });
  const probe = redis.client();
  const server = Number(/process_id:(\d+)/.exec(await probe.info('server'))?.[1]);
  const all: SyncFigures[] = [];
  const waits: Stillness[] = [];
  const sync = async (wanted: string) => {
    const over = new AbortController();
    // Whatever keeps Redis from serving others shows: commands, whole transactions, writes of the log, forks.
    const watching = longestStillness({ pids: [server, process.pid], ask: () => probe.ping() }, over.signal);
    const figures = (await child.tell({ run: true })) as SyncFigures;
    over.abort();
    waits.push(await watching);
    all.push(figures);
    if (figures.outcome === wanted) return figures;
    throw new Error(`the sync was ${figures.outcome}, not ${wanted}: ${JSON.stringify(figures.problem)}`);
  };
  await github.count();
  const { ms } = await sync('published');
  const initial = (await github.count()).requests;
  await sync('unchanged');
  const idle = await github.count();
  const fresh = String(systemClock.now());
  await github.tell({ commit: commitOf(CHANGED, (at) => at * 7, 2, fresh) });
  await sync('published');
  const { requests: changed } = await github.count();
  await github.tell({ commit: commitOf(MANIFESTS, (at) => at, 3, fresh) });
  await sync('published');
  const first = {
    ms,
    redis: worstOf(waits),
    loop: worstOf(all.map(({ loop }) => loop)),
    rssMb: Math.max(...all.map(({ rssMb }) => rssMb)),
  };
  return { first, initial, unchanged: idle.requests, unchangedQuota: idle.quota, changed };
}

const commitOf = (count: number, which: (at: number) => number, minor: number, fresh?: string) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [path(which(at)), manifest(which(at), minor, fresh)] as const),
  );

/** What bin/reeve gives to Node: the memory is that of a daemon only with them. */
async function daemonFlags(): Promise<readonly string[]> {
  const script = await readFile(new URL('../bin/reeve', import.meta.url), 'utf8');
  return /exec node ((?:--\S+ )*)/.exec(script)?.[1]?.trim().split(' ') ?? [];
}

/** The same done by hand: clone, read every file, parse, validate, write all hashes with one pipeline. */
async function floor(repo: string, redis: TestRedis): Promise<number> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-floor-'));
  const client = redis.client();
  try {
    const began = performance.now();
    await run('git', ['clone', '--quiet', '--depth=1', `file://${repo}`, dir]);
    const pipeline = client.pipeline();
    for (const name of await readdir(join(dir, 'tools'))) {
      const text = await readFile(join(dir, 'tools', name, 'manifest.yaml'), 'utf8');
      const asset = MANIFEST.parse(load(text));
      const fields = fieldsOf({
        ...asset,
        id: asset.id,
        github_path: name,
        github_sha: '',
        created_at: 0,
        updated_at: 0,
      });
      pipeline.hset(`floor:${asset.id}`, fields);
    }
    await pipeline.exec();
    return performance.now() - began;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

interface Child extends AsyncDisposable {
  /** The first thing it said. */
  readonly said: unknown;
  /** Sends an order and waits for the answer. */
  tell(order: object): Promise<unknown>;
}

interface GithubProcess extends Child {
  readonly url: string;
  readonly token: string;
  readonly name: string;
  readonly dir: string;
  count(): Promise<{ readonly requests: number; readonly quota: number }>;
}

async function start(file: URL, execArgv: readonly string[] = []): Promise<Child> {
  const child = fork(file, { stdio: 'inherit', execArgv: [...execArgv] });
  const answer = async () => ((await once(child, 'message')) as [unknown])[0];
  const said = await answer();
  return {
    said,
    tell: async (order) => {
      const answered = answer();
      child.send(order);
      return answered;
    },
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit');
      child.disconnect();
      await gone;
    },
  };
}

async function githubProcess(): Promise<GithubProcess> {
  const child = await start(new URL('./github-process.ts', import.meta.url));
  const about = child.said as Pick<GithubProcess, 'url' | 'token' | 'name' | 'dir'>;
  const count = async () => (await child.tell({ count: true })) as { requests: number; quota: number };
  return { ...child, ...about, count };
}

const path = (at: number): string => `tools/t${at}/manifest.yaml`;

/** About 1.5 KB, as a tool with some settings is. */
const manifest = (at: number, minor: number, fresh = ''): string => `# Tool ${at} ${fresh}
id: tool_${at}
version: 1.${minor}.0
category: tool
name: Tool number ${at}
description: Looks things up in the collection number ${at} and answers with what it found there, best match first.
author: Team ${at % 50}
tags: [search, lookup, group-${at % 100}]
config_schema:
${['endpoint', 'api_key', 'region', 'timeout', 'verbose']
  .map(
    (name, index) =>
      `  - name: ${name}\n    label: The ${name} of tool ${at}\n    type: ${['string', 'secret', 'select', 'number', 'boolean'][index]}\n    required: ${index < 2}${index === 2 ? '\n    options: [eu, us, asia]' : ''}`,
  )
  .join('\n')}
agent_specs:
  function_name: lookup_${at}
  description: Call this to look something up in collection ${at}. It is quick and has no side effects.
  parameters:
    type: object
    properties:
      query:
        type: string
        description: What to look for, in plain words
      limit:
        type: integer
        description: How many answers at most
        minimum: 1
        maximum: 50
    required: [query]
runtime:
  language: python
  entry: main.py
  handler: run
  dependencies: [requests, beautifulsoup4]
permissions: [network]
`;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const round = (value: number, digits = 0): number => Math.round(value * 10 ** digits) / 10 ** digits;
