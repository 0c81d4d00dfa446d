import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Library } from '../../src/registry/library.ts';
import { queryWords, wordsOf } from '../../src/registry/words.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aRegistry, type Files, type TestRegistry, tool } from '../support/registry.ts';
import { refuseUndeclaredKeys } from '../support/undeclared-keys.ts';

let server: TestRedis;
let redis: Redis;
let room: TestRegistry;
beforeAll(async () => {
  server = await startTestRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.flush();
  room = await aRegistry(server);
});
afterEach(async () => {
  await refuseUndeclaredKeys(redis, { mode: 'standalone' }, { mode: 'standalone', namespace: 'team_a' });
  await room[Symbol.asyncDispose]();
});

const find = async (
  query: string,
  more: { category?: 'tool' | 'prompt' | 'skill'; limit?: number; after?: string } = {},
) => (await room.registry.catalogue.search(query, { limit: 50, ...more })).items.map(({ id }) => id);

const SOME: Files = {
  ...tool('google_search', { name: 'Google 搜索', description: 'Searches the web', tags: ['web'] }),
  ...tool('weather', { name: 'Weather', description: 'Looks up a forecast; better than a web search', author: 'Zoë' }),
  ...tool('analysis', { category: 'skill', name: '数据分析', description: 'Finds what a table says', tags: ['统计'] }),
  ...tool('translate', { category: 'prompt', name: 'Übersetzer', description: 'Translates texts into German' }),
};

describe('a search', () => {
  beforeEach(() => room.sync('c1', SOME));

  test.each<[string, string[]]>([
    ['search', ['google_search', 'weather']],
    ['sea', ['google_search', 'weather']],
    ['SEARCH web', ['google_search', 'weather']],
    ['google weather', []],
    ['搜索', ['google_search']],
    ['数据', ['analysis']],
    ['据分', ['analysis']],
    ['析', ['analysis']],
    ['统计', ['analysis']],
    ['ubersetzer', ['translate']],
    ['Übersetzer', ['translate']],
    ['zoe', ['weather']],
    ['google-search', ['google_search']],
    ['the web', ['google_search', 'weather']],
    ['', []],
    ['*', []],
    ['🙂', []],
  ])('for %j finds %j, best first', async (query, ids) => {
    expect(await find(query)).toEqual(ids);
  });

  test('keeps to a category', async () => {
    expect(await find('an', { category: 'skill' })).toEqual(['analysis']);
    expect(await find('search', { category: 'prompt' })).toEqual([]);
  });

  test('follows every change at once: new words found, old words gone', async () => {
    await room.sync('c2', {
      ...SOME,
      ...tool('weather', { name: 'Climate', description: 'Long term', author: 'Zoë' }),
    });
    expect(await find('forecast')).toEqual([]);
    expect(await find('climate')).toEqual(['weather']);
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });

  test('goes on over a large publish, which flips to a new generation', async () => {
    expect(await find('search')).toHaveLength(2);
    const many = Object.assign({}, ...Array.from({ length: 250 }, (_, at) => tool(`searcher_${at}`))) as Files;
    const before = await redis.hget('asset:search:index', 'generation');
    await room.sync('c2', { ...SOME, ...many });
    expect(await redis.hget('asset:search:index', 'generation')).not.toBe(before);
    expect(await redis.exists(`asset:search:words:${before}`)).toBe(0);
    expect(await find('searcher', { limit: 500 })).toHaveLength(250);
    expect(await find('forecast')).toEqual(['weather']);
    const page = await room.registry.catalogue.search('searcher', { limit: 100, after: '200' });
    expect([page.items.length, page.total, page.next]).toEqual([50, 250, undefined]);
  });
});

test('a word that nearly everything has narrows a search without being read', async () => {
  const many = Object.assign({}, ...Array.from({ length: 4_100 }, (_, at) => tool(`common_${at}`))) as Files;
  await room.sync('c1', {
    ...many,
    ...tool('rare_bird', { name: 'Common rare bird' }),
    ...tool('rare_fish', { name: 'Rare fish' }),
  });
  expect(await find('common rare')).toEqual(['rare_bird']);
  const broad = await room.registry.catalogue.search('common', { limit: 10 });
  expect(broad).toMatchObject({ isCut: true, items: { length: 10 } });
}, 60_000);

describe('words', () => {
  test('are whole whatever the text, and finding a text finds it by its own words', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const words = wordsOf(text);
        for (const word of words) {
          expect(word).not.toMatch(/[\0\s]/);
          expect(word.isWellFormed()).toBe(true);
        }
        const own = new Set(words);
        for (const word of queryWords(text)) expect([...own].some((one) => one.startsWith(word))).toBe(true);
      }),
    );
  });
});

describe('a list', () => {
  test('pages through everything once, in the order of ids, while assets come and go', async () => {
    const names = Array.from({ length: 95 }, (_, at) => `t${String(at).padStart(3, '0')}`);
    const files = Object.assign(
      {},
      ...names.map((id, at) => tool(id, { category: (['tool', 'prompt', 'skill'] as const)[at % 3] })),
    ) as Files;
    await room.sync('c1', files);
    const library = new Library([{ name: 'main', registry: room.registry }]);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await library.list({ limit: 20, cursor });
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.next_cursor;
      if (seen.length === 40) await room.sync('c2', { ...files, ...tool('t000a') });
    } while (cursor);
    expect(seen).toEqual(names);
    expect(await library.list({ limit: 5, category: 'skill' })).toMatchObject({
      total: 31,
      items: [{ id: 't002', category: 'skill', source: 'main' }, {}, {}, {}, {}],
    });
  });

  test('spans sources, and an id is looked up where it stands first', async () => {
    const other = await aRegistry(server, { namespace: 'team_a' });
    await room.sync('c1', { ...tool('a'), ...tool('b') });
    await other.sync('d1', { ...tool('b', { name: 'Theirs' }), ...tool('z') });
    const library = new Library([
      { name: 'main', registry: room.registry },
      { name: 'team', registry: other.registry },
    ]);
    const first = await library.list({ limit: 3 });
    expect(first.items.map(({ id, source }) => `${source}/${id}`)).toEqual(['main/a', 'main/b', 'team/b']);
    const second = await library.list({ limit: 3, cursor: first.next_cursor });
    expect(second.items.map(({ id }) => id)).toEqual(['z']);
    expect([first.total, second.total, second.next_cursor]).toEqual([4, 4, undefined]);
    expect(await library.get('b')).toMatchObject({ name: 'Name of b', source: 'main' });
    expect(await library.get('b', { source: 'team' })).toMatchObject({ name: 'Theirs' });
    await expect(library.get('nope')).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
    await expect(library.list({ limit: 3, source: 'nope' })).rejects.toMatchObject({ code: 'NO_SUCH_SOURCE' });
    await expect(library.list({ limit: 3, cursor: 'bogus!' })).rejects.toMatchObject({ code: 'BAD_CURSOR' });
    await other[Symbol.asyncDispose]();
  });
});
