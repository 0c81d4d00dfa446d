import type { RedisClient } from '../redis/connection.ts';
import { isId } from '../redis/ids.ts';
import type { Keyspace } from '../redis/keys.ts';
import { assetOf, type StoredAsset, type Summary } from './asset.ts';
import { CATEGORIES, type Category } from './category.ts';
import { decodeEntry, type Entry, entriesOf, prefixRange } from './search-entries.ts';
import { queryWords } from './words.ts';

export interface Filter {
  readonly category?: Category | undefined;
  readonly limit: number;
  /** Ids after this one, or matches after this many. */
  readonly after?: string | undefined;
}

export interface Page {
  readonly items: readonly Summary[];
  /** Where the next page goes on; undefined after the last one. */
  readonly next?: string;
  readonly total: number;
  /** There are more matches than were looked at: the question is too broad to be counted. */
  readonly isCut?: boolean;
}

/** A word that begins more entries than this is too common to read; it is checked against the other words' matches instead. */
const MOST_ENTRIES = 4_000;
const MOST_TRIES = 3;

/** Reading one namespace of the registry: one asset, a page, a search. Everything a page shows is of one generation. */
export class Catalogue {
  readonly #client: () => RedisClient;
  readonly #keys: Keyspace;
  /** The generation of the last search: asking with it saves a round trip, and the answer says if it was wrong. */
  #generation: string | undefined;

  constructor(client: () => RedisClient, keys: Keyspace) {
    this.#client = client;
    this.#keys = keys;
  }

  async get(id: string): Promise<StoredAsset | undefined> {
    if (!isId('asset', id)) return undefined;
    const fields = await this.#client().hgetall(this.#keys.assetMetadata(id));
    return fields.id === undefined ? undefined : assetOf(fields);
  }

  /** In the order of ids. */
  async list({ category, limit, after }: Filter): Promise<Page> {
    const wanted = category ? [category] : CATEGORIES;
    const from = after === undefined ? '-' : `(${after}`;
    for (let attempt = 1; ; attempt++) {
      // Asked in one turn they leave together, in this order; a pipeline would cost more and promise no more.
      const redis = this.#client();
      const [state, counted, ...lists] = await Promise.all([
        redis.hmget(this.#keys.assetSyncState(), 'generation', 'synced_count'),
        category && redis.zcard(this.#keys.assetOrder(category)),
        ...wanted.map((one) => redis.zrangebylex(this.#keys.assetOrder(one), from, '+', 'LIMIT', 0, limit + 1)),
      ]);
      const ids = lists.flat().sort(byCode);
      const page = ids.slice(0, limit);
      const total = counted ?? Number(state[1] ?? 0);
      const { items, generation } = await this.#summaries(page, this.#keys.assetSyncState());
      if (generation !== state[0] && attempt < MOST_TRIES) continue;
      return { items, total, ...(ids.length > limit && { next: page.at(-1)! }) };
    }
  }

  /** Best match first. Every word of the question must begin a word of the asset. */
  async search(query: string, { category, limit, after }: Filter): Promise<Page> {
    const words = queryWords(query);
    if (words.length === 0) return { items: [], total: 0 };
    for (let attempt = 1; ; attempt++) {
      const matched = await this.#matches(words, category);
      if (!matched) continue;
      const { ids, isCut } = matched;
      const from = Number(after ?? 0);
      const page = ids.slice(from, from + limit);
      const { items, generation } = await this.#summaries(page, this.#keys.assetSearchIndex());
      if (generation !== this.#generation && attempt < MOST_TRIES) continue;
      const end = from + limit;
      return { items, total: ids.length, ...(isCut && { isCut }), ...(ids.length > end && { next: String(end) }) };
    }
  }

  /** Undefined: another generation is current meanwhile; ask again. */
  async #matches(words: readonly string[], category: Category | undefined) {
    const redis = this.#client();
    const generation = this.#generation;
    const [current, ...found] = await Promise.all([
      redis.hget(this.#keys.assetSearchIndex(), 'generation'),
      ...(generation === undefined ? [] : words.map((word) => this.#entries(redis, word, generation))),
    ]);
    if (current === null) return { ids: [], isCut: false };
    if (current !== this.#generation) {
      this.#generation = current;
      return undefined;
    }
    const lists = found.map((members, at) => ({
      word: words[at]!,
      isBroad: members.length > MOST_ENTRIES,
      scores: scoresOf(members, words[at]!, category),
    }));
    const narrow = lists.filter(({ isBroad }) => !isBroad);
    const used = narrow.length > 0 ? narrow : lists;
    const scores = used.map((list) => list.scores).reduce(intersect);
    const broad = narrow.length > 0 ? lists.filter(({ isBroad }) => isBroad).map(({ word }) => word) : [];
    const kept = broad.length > 0 ? await this.#withWords(scores, broad, current) : scores;
    return { ids: ranked(kept), isCut: narrow.length === 0 };
  }

  #entries(redis: RedisClient, word: string, generation: string): Promise<string[]> {
    const [from, to] = prefixRange(word);
    return redis.zrangebylex(this.#keys.assetSearchWords(generation), from, to, 'LIMIT', 0, MOST_ENTRIES + 1);
  }

  /** Of these, the ones that also have words which are too common to read the lists of. */
  async #withWords(scores: ReadonlyMap<string, number>, words: readonly string[], generation: string) {
    const ids = [...scores.keys()];
    if (ids.length === 0) return scores;
    const docs = await this.#client().hmget(this.#keys.assetSearchDocs(generation), ...ids);
    return new Map(
      ids.flatMap((id, at): [string, number][] => {
        const entries = entriesOf(id, docs[at] ?? '');
        const best = words.map((word) =>
          Math.max(0, ...entries.filter((entry) => entry.word.startsWith(word)).map((entry) => score(entry, word))),
        );
        return best.every((one) => one > 0)
          ? [[id, (scores.get(id) ?? 0) + best.reduce((sum, one) => sum + one, 0)]]
          : [];
      }),
    );
  }

  /** The index entries, and the generation that the other key is at by now. */
  async #summaries(ids: readonly string[], generationKey: string) {
    const redis = this.#client();
    const [generation, found] = await Promise.all([
      redis.hget(generationKey, 'generation'),
      ids.length > 0 ? redis.hmget(this.#keys.assetIndex(), ...ids) : [],
    ]);
    const items: Summary[] = [];
    for (const json of found) if (json) items.push(JSON.parse(json) as Summary);
    return { generation, items };
  }
}

/** A whole word tells twice as much as the beginning of one. */
const score = ({ word, weight }: Entry, asked: string): number => (word === asked ? 2 * weight : weight);

function scoresOf(members: readonly string[], asked: string, category: Category | undefined): Map<string, number> {
  const scores = new Map<string, number>();
  for (const member of members) {
    const entry = decodeEntry(member);
    if (!entry || (category && entry.category !== category)) continue;
    scores.set(entry.id, Math.max(score(entry, asked), scores.get(entry.id) ?? 0));
  }
  return scores;
}

function intersect(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): Map<string, number> {
  const both = new Map<string, number>();
  for (const [id, value] of a) {
    const other = b.get(id);
    if (other !== undefined) both.set(id, value + other);
  }
  return both;
}

const ranked = (scores: ReadonlyMap<string, number>): string[] =>
  [...scores].sort(([a, best], [b, next]) => next - best || byCode(a, b)).map(([id]) => id);

/** As Redis orders them. */
const byCode = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
