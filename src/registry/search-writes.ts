import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { pacedMap } from './pace.ts';
import type { Plan } from './plan.ts';
import { docOf, encodeEntry, entriesOf } from './search-entries.ts';
import { type Command, send, spread } from './transaction.ts';

/** The search words of a publish: changed in place, or a whole new generation that the pointer flips to. */
export interface SearchWrites {
  readonly inPlace: () => Iterable<Command>;
  readonly generation: string;
  /** The keys of the new generation, to be noted before they are written. */
  readonly newKeys: readonly string[];
  /** Writes the new generation beside the old one. */
  readonly build: () => Promise<void>;
  /** Makes it the current one. */
  readonly flip: () => Iterable<Command>;
}

interface SearchOptions {
  readonly client: RedisClient;
  readonly keys: Keyspace;
  readonly plan: Plan;
  readonly generation: number;
  readonly rebuild: boolean;
  readonly at: number;
}

const AT_ONCE = 1000;

export async function searchWrites({
  client,
  keys,
  plan,
  generation,
  rebuild,
  at,
}: SearchOptions): Promise<SearchWrites> {
  const pointer = keys.assetSearchIndex();
  const current = (await client.hget(pointer, 'generation')) ?? undefined;
  const docs = new Map(await pacedMap(plan.puts, (asset) => [asset.id as string, docOf(asset)] as const));
  const next = String(generation);
  let total = 0;
  const members = (all: Iterable<readonly [string, string]>) =>
    [...all].flatMap(([id, doc]) => entriesOf(id, doc).map(encodeEntry));
  const before = async (): Promise<Map<string, string>> => {
    if (rebuild || !current) return new Map();
    return new Map(Object.entries(await client.hgetall(keys.assetSearchDocs(current))));
  };
  const touched = [...docs.keys(), ...plan.removes];
  const gone = current && touched.length <= AT_ONCE ? await docsOf(client, keys.assetSearchDocs(current), touched) : [];

  return {
    generation: next,
    newKeys: [keys.assetSearchWords(next), keys.assetSearchDocs(next)],
    *inPlace() {
      if (touched.length === 0) return;
      const here = current ?? next;
      const out = members(gone);
      const come = members(docs);
      const lost = new Set(out);
      yield* spread(['ZREM', keys.assetSearchWords(here)], out, AT_ONCE);
      yield* spread(['ZADD', keys.assetSearchWords(here)], scored(come), 2 * AT_ONCE);
      yield* spread(['HDEL', keys.assetSearchDocs(here)], touched, AT_ONCE);
      yield* spread(['HSET', keys.assetSearchDocs(here)], [...docs].flat(), 2 * AT_ONCE);
      yield ['HINCRBY', pointer, 'words', String(come.length - lost.size)];
      yield ['HSET', pointer, 'generation', here, 'built_at', String(at)];
    },
    async build() {
      const all = await before();
      for (const id of plan.removes) all.delete(id);
      for (const [id, doc] of docs) all.set(id, doc);
      total = 0;
      for (const chunk of chunks([...all], 200)) {
        const entries = members(chunk);
        total += entries.length;
        await send(client, [
          ...spread(['ZADD', keys.assetSearchWords(next)], scored(entries), 2 * AT_ONCE),
          ...spread(['HSET', keys.assetSearchDocs(next)], chunk.flat(), 2 * AT_ONCE),
        ]);
      }
    },
    *flip() {
      if (current && current !== next) yield ['UNLINK', keys.assetSearchWords(current), keys.assetSearchDocs(current)];
      yield ['HSET', pointer, 'generation', next, 'words', String(total), 'built_at', String(at)];
    },
  };
}

async function docsOf(client: RedisClient, key: string, ids: readonly string[]): Promise<[string, string][]> {
  const values = (await send(client, spread(['HMGET', key], ids, AT_ONCE))).flat() as (string | null)[];
  return ids.flatMap((id, at): [string, string][] => (values[at] ? [[id, values[at]]] : []));
}

const scored = (members: readonly string[]): string[] => members.flatMap((member) => ['0', member]);

function* chunks<T>(all: readonly T[], size: number): Iterable<T[]> {
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}
