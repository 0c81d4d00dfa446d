import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { type Connection, connectRedis } from '../../src/redis/connection.ts';
import type { KeyspaceOptions } from '../../src/redis/keys.ts';
import { keyspace } from '../../src/redis/keys.ts';
import { blobSha } from '../../src/registry/asset.ts';
import type { Guards } from '../../src/registry/guards.ts';
import type { ManifestFile, Parsed } from '../../src/registry/manifest.ts';
import { createParsePool } from '../../src/registry/parse-pool.ts';
import { type Listing, pathsToParse } from '../../src/registry/plan.ts';
import type { Publication, Published } from '../../src/registry/publish.ts';
import { configFingerprint, Registry } from '../../src/registry/registry.ts';
import type { TestRedis } from './redis.ts';

/** A manifest as text; `more` replaces or adds lines. */
export const manifestText = (id: string, more: Readonly<Record<string, unknown>> = {}): string => {
  const parts = {
    id,
    version: '1.0.0',
    category: 'tool',
    name: `Name of ${id}`,
    description: `What ${id} does`,
    author: 'ann',
    tags: ['test'],
    agent_specs: { function_name: 'call_it', description: 'Call it.', parameters: { type: 'object' } },
    runtime: { language: 'none' },
    permissions: ['network'],
    ...more,
  };
  return Object.entries(parts)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
    .join('');
};

/** Files by path, as a repository would have them. */
export type Files = Readonly<Record<string, string>>;

export const tool = (id: string, more?: Readonly<Record<string, unknown>>): Files => ({
  [`tools/${id}/manifest.yaml`]: manifestText(id, more),
});

export const fileOf = (path: string, text: string | Uint8Array): ManifestFile => {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  return { path, sha: blobSha(bytes), bytes };
};

export interface TestRegistry extends AsyncDisposable {
  readonly registry: Registry;
  readonly connection: Connection;
  /** Takes the place of a sync: lists these files as a commit, parses what must be, plans and publishes. */
  sync(commit: string, files: Files, more?: SyncMore): Promise<Synced>;
  nextFence(): Promise<number>;
}

export interface SyncMore extends Partial<Publication> {
  readonly listing?: Partial<Listing>;
  readonly fingerprint?: string;
}

export type Synced = (Published | { readonly outcome: 'held' }) & { readonly parsed: ReadonlyMap<string, Parsed> };

export interface RegistryMore {
  readonly namespace?: string;
  readonly mode?: KeyspaceOptions['mode'];
  readonly guards?: Guards;
  readonly connection?: Connection;
}

export async function openConnection(redis: TestRedis): Promise<Connection> {
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'test', options: redis.options }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 20_000,
    connectTimeoutMs: 5_000,
    name: 'test',
  });
  await connection.start();
  return connection;
}

export async function aRegistry(redis: TestRedis, more: RegistryMore = {}): Promise<TestRegistry> {
  const { namespace, mode = 'standalone', guards } = more;
  const connection = more.connection ?? (await openConnection(redis));
  const pool = createParsePool({ threads: 1 });
  const registry = new Registry({ connection, mode, namespace, pool, ...(guards && { guards }) });
  const keys = keyspace({ mode, ...(namespace && { namespace }) });
  const nextFence = () => connection.commands.incr(keys.assetSyncFence());
  return {
    registry,
    connection,
    nextFence,
    sync: async (commit, files, { listing: extra, fingerprint = configFingerprint({}), ...publication } = {}) => {
      const fence = await nextFence();
      const known = await registry.known();
      const all = new Map(Object.entries(files).map(([path, text]) => [path, fileOf(path, text)]));
      await registry.blobs.put(new Map([...all.values()].map(({ sha, bytes }) => [sha, bytes])));
      const entries = new Map(
        [...all].map(([path, { sha, bytes }]) => [path, { sha, kind: 'file', size: bytes.byteLength } as const]),
      );
      const listing: Listing = { commit, complete: true, entries, ...extra };
      const wanted = pathsToParse(known, listing, fingerprint).flatMap((path) => all.get(path) ?? []);
      const results = await pool.parse(wanted);
      const parsed = new Map(wanted.map(({ path }, at) => [path, results[at]!]));
      const plan = await registry.plan(known, listing, parsed);
      if (plan.held) {
        await registry.hold(plan.held);
        return { outcome: 'held', parsed };
      }
      const published = await registry.publish({
        plan,
        source: 'test',
        previousCommit: known.commit,
        fence,
        configFingerprint: fingerprint,
        ...publication,
      });
      return { ...published, parsed };
    },
    [Symbol.asyncDispose]: async () => {
      await pool.close();
      if (!more.connection) await connection.stop();
    },
  };
}
