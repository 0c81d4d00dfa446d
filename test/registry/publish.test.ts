import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { STAGE_ABOVE } from '../../src/registry/publish.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aRegistry, type Files, type TestRegistry, tool } from '../support/registry.ts';
import { refuseUndeclaredKeys, undeclaredKeys } from '../support/undeclared-keys.ts';

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
  await refuseUndeclaredKeys(redis);
  await room[Symbol.asyncDispose]();
});

const many = (count: number, more: Readonly<Record<string, unknown>> = {}): Files =>
  Object.assign({}, ...Array.from({ length: count }, (_, at) => tool(`tool_${at}`, more)));

describe('what a publish writes', () => {
  test('every key that the contract prescribes, in its form', async () => {
    await room.sync('c1', { ...tool('google_search', { description: '𝒳'.repeat(120) }) });
    const metadata = await redis.hgetall('asset:metadata:google_search');
    expect(metadata).toMatchObject({
      id: 'google_search',
      version: '1.0.0',
      category: 'tool',
      author: 'ann',
      permissions: '["network"]',
      tags: '["test"]',
      github_path: 'tools/google_search/manifest.yaml',
    });
    expect(JSON.parse(metadata.runtime!)).toEqual({ language: 'none', dependencies: [] });
    expect(metadata.github_sha).toMatch(/^[0-9a-f]{40}$/);
    expect(metadata.created_at).toMatch(/^\d{10}$/);
    expect(await redis.smembers('asset:category:tool')).toEqual(['google_search']);
    const summary = JSON.parse((await redis.hget('asset:index', 'google_search'))!);
    expect(Object.keys(summary)).toEqual(['id', 'name', 'category', 'version', 'description']);
    expect([...summary.description]).toHaveLength(100);
    expect(summary.description.isWellFormed()).toBe(true);
    expect(await redis.lrange('asset:sync:changed', 0, -1)).toEqual(['google_search']);
    expect(await redis.hgetall('asset:sync:state')).toMatchObject({
      last_commit_sha: 'c1',
      synced_count: '1',
      sync_status: 'idle',
      error_count: '0',
      degraded: 'false',
      generation: '1',
    });
  });

  test.each([
    ['a few', 3],
    ['many, staged', STAGE_ABOVE + 20],
  ])('a change replaces the hash, keeps created_at, and moves the category: %s', async (_name, count) => {
    await room.sync('c1', many(count, { author: 'ann' }));
    await redis.hset('asset:metadata:tool_1', { stray: 'field' });
    await redis.hset('asset:sync:state', { unknown: '1' });
    const created = await redis.hget('asset:metadata:tool_1', 'created_at');
    const files = Object.fromEntries(
      Object.entries(many(count, { author: undefined, category: 'skill', version: '1.1.0' })),
    );
    expect(await room.sync('c2', files)).toMatchObject({ outcome: 'published', generation: 2, changed: count });
    const after = await redis.hgetall('asset:metadata:tool_1');
    expect(after.author).toBeUndefined();
    expect(after.stray).toBeUndefined();
    expect(after.created_at).toBe(created);
    expect(await redis.scard('asset:category:tool')).toBe(0);
    expect(await redis.scard('asset:category:skill')).toBe(count);
    expect(await redis.xlen('asset:sync:events')).toBe(2 * count);
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });

  test('a removal takes every trace of the asset with it, and is told of', async () => {
    await room.sync('c1', { ...tool('a'), ...tool('b'), ...tool('c'), ...tool('zebra') });
    await room.sync('c2', { ...tool('a'), ...tool('b'), ...tool('c') });
    expect(await redis.exists('asset:metadata:zebra')).toBe(0);
    expect(await redis.hexists('asset:index', 'zebra')).toBe(0);
    expect(await redis.sismember('asset:category:tool', 'zebra')).toBe(0);
    expect((await redis.lrange('asset:sync:changed', -1, -1))[0]).toBe('zebra');
    const [[, fields] = ['', []]] = await redis.xrevrange('asset:sync:events', '+', '-', 'COUNT', 1);
    expect(fields.join(' ')).toContain('op removed id zebra');
    expect(await room.registry.catalogue.search('zebra', { limit: 10 })).toMatchObject({ total: 0 });
  });

  test('the list of changes keeps the newest thousand', async () => {
    await room.sync('c1', many(700));
    await room.sync('c2', many(700, { version: '2.0.0' }));
    expect(await redis.llen('asset:sync:changed')).toBe(1000);
    expect(await redis.llen('asset:sync:outbox')).toBe(0);
    expect(await redis.xlen('asset:sync:events')).toBe(1400);
  });

  test('an unchanged file is not written again', async () => {
    await room.sync('c1', { ...tool('a') });
    expect(await room.sync('c2', { ...tool('a') })).toMatchObject({ outcome: 'published', changed: 0 });
    expect(await redis.llen('asset:sync:changed')).toBe(1);
  });

  test('a namespace has keys of its own', async () => {
    const other = await aRegistry(server, { namespace: 'team_a' });
    await other.sync('c1', tool('theirs'));
    expect(await redis.exists('asset:ns:team_a:metadata:theirs')).toBe(1);
    expect(await redis.exists('asset:index')).toBe(0);
    // The stream that everybody follows is the only one of the plain names.
    const plain = (await redis.scan('0', 'MATCH', 'asset:*', 'COUNT', 10_000))[1].filter(
      (key) => !key.startsWith('asset:ns:'),
    );
    expect(plain).toEqual(['asset:sync:events']);
    const spaces = [{ mode: 'standalone', namespace: 'team_a' }, { mode: 'standalone' }] as const;
    expect(await undeclaredKeys(redis, ...spaces)).toEqual([]);
    await other[Symbol.asyncDispose]();
    await server.flush();
  });

  test.each([3, STAGE_ABOVE + 10])(
    'what %i changes of a namespace come to is told to everybody, once',
    async (count) => {
      const other = await aRegistry(server, { namespace: 'team_a' });
      await room.sync('c1', tool('ours'));
      await other.sync('c1', many(count));
      const told = await redis.xrange('asset:sync:events', '-', '+');
      const facts = told.map(([, flat]) =>
        Object.fromEntries(flat.flatMap((_, at) => (at % 2 ? [] : [flat.slice(at, at + 2)]))),
      );
      expect(facts[0]).not.toHaveProperty('namespace');
      expect(facts.slice(1).map(({ namespace, id }) => `${namespace} ${id}`)).toEqual(
        Array.from({ length: count }, (_, at) => `team_a tool_${at}`),
      );
      expect(await redis.xlen('asset:ns:team_a:sync:events')).toBe(count);
      await other[Symbol.asyncDispose]();
      await server.flush();
    },
  );
});

describe('a large publish', () => {
  const count = STAGE_ABOVE + 50;
  const stageKeys = async () => (await redis.scan('0', 'MATCH', 'asset:stage:*', 'COUNT', 100_000))[1];

  test('frees what it replaced and removed, after it was seen, and leaves nothing behind', async () => {
    await room.sync('c1', many(count));
    const kept = many(count - 20, { version: '2.0.0' });
    let waiting: string[] = [];
    await room.sync('c2', kept, {
      progress: async (step) => {
        if (step === 'committed') waiting = await stageKeys();
      },
    });
    expect(waiting.filter((key) => key.startsWith('asset:stage:old:'))).toHaveLength(count);
    expect(await stageKeys()).toEqual([]);
    expect(await redis.exists(`asset:metadata:tool_${count - 1}`)).toBe(0);
    expect(await redis.hget('asset:metadata:tool_1', 'version')).toBe('2.0.0');
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });

  test('takes an asset that somebody deleted meanwhile for no failure', async () => {
    await room.sync('c1', many(count));
    await room.sync('c2', many(count - 20, { version: '2.0.0' }), {
      progress: async (step) => {
        if (step === 'staged') await redis.unlink('asset:metadata:tool_1', `asset:metadata:tool_${count - 1}`);
      },
    });
    expect(await redis.hget('asset:sync:state', 'degraded')).toBe('false');
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  });
});

describe('who may publish', () => {
  test('a publish against another commit than the published one is stale and writes nothing', async () => {
    await room.sync('c1', tool('a'));
    const before = await redis.hgetall('asset:sync:state');
    expect(await room.sync('c2', { ...tool('a', { version: '2.0.0' }) }, { previousCommit: 'c0' })).toMatchObject({
      outcome: 'stale',
      commit: 'c1',
    });
    expect(await redis.hget('asset:metadata:a', 'version')).toBe('1.0.0');
    expect(await redis.hgetall('asset:sync:state')).toEqual(before);
  });

  test('a daemon that was paused while another one began to sync is refused, small or large', async () => {
    await room.sync('c1', many(5));
    for (const count of [5, STAGE_ABOVE + 10]) {
      const late = room.sync(`late-${count}`, many(count, { version: '9.0.0' }), {
        progress: async (step) => {
          if (step === 'staged') await room.nextFence();
        },
      });
      expect(await late).toMatchObject({ outcome: 'stale' });
      expect(await redis.hget('asset:metadata:tool_1', 'version')).toBe('1.0.0');
    }
    await room.sync('c1', many(5));
    expect(await redis.llen('asset:stage:journal')).toBe(0);
  });

  test('of many publishers at once each commit is published by one', async () => {
    const rooms = await Promise.all(Array.from({ length: 4 }, () => aRegistry(server)));
    const outcomes = await Promise.all(rooms.map((one, at) => one.sync(`c${at}`, tool('a', { version: `1.0.${at}` }))));
    const published = outcomes.filter(({ outcome }) => outcome === 'published').length;
    expect(published).toBeGreaterThan(0);
    expect(await redis.hget('asset:sync:state', 'generation')).toBe(String(published));
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
    for (const one of rooms) await one[Symbol.asyncDispose]();
  });
});

describe('what readers see meanwhile', () => {
  test('always one generation: index, metadata, set and state agree in every read', async () => {
    const count = STAGE_ABOVE + 30;
    await room.sync('v1', many(count, { version: '1.0.0' }));
    let isOver = false;
    const seen = new Set<string>();
    const reader = (async () => {
      const client = server.client();
      while (!isOver) {
        const read = await client
          .multi()
          .hget('asset:sync:state', 'last_commit_sha')
          .hvals('asset:index')
          .hget('asset:metadata:tool_7', 'version')
          .hget('asset:metadata:tool_199', 'version')
          .scard('asset:category:tool')
          .exec();
        const [commit, index, one, other, members] = read!.map(([, answer]) => answer) as [
          string,
          string[],
          string,
          string,
          number,
        ];
        const versions = new Set(index.map((json) => JSON.parse(json).version as string));
        expect([...versions, one, other]).toEqual(Array(3).fill(`${commit.slice(1)}.0.0`));
        expect(members).toBe(index.length);
        seen.add(commit);
      }
    })();
    for (const version of [2, 3, 4]) await room.sync(`v${version}`, many(count, { version: `${version}.0.0` }));
    isOver = true;
    await reader;
    expect(seen.size).toBeGreaterThan(1);
  });
});

describe('a crash', () => {
  const count = STAGE_ABOVE + 10;
  test.each(['cleared', 'read', 'staged', 'committed', 'told'] as const)(
    'after "%s" leaves the old commit or the new one, and the next sync finishes the rest',
    async (crashAt) => {
      for (const size of [3, count]) {
        await server.flush();
        await room.sync('c1', many(size));
        const crash = room.sync('c2', many(size, { version: '2.0.0' }), {
          progress: (step) => {
            if (step === crashAt) throw new Error('power cut');
          },
        });
        await expect(crash).rejects.toThrow('power cut');
        const commit = await redis.hget('asset:sync:state', 'last_commit_sha');
        expect(commit).toBe(crashAt === 'committed' || crashAt === 'told' ? 'c2' : 'c1');
        expect(await redis.hget('asset:metadata:tool_1', 'version')).toBe(commit === 'c2' ? '2.0.0' : '1.0.0');
        expect(await room.registry.check()).toEqual({ outcome: 'sound' });
        expect(await undeclaredKeys(redis)).toEqual([]);
        await room.sync('c3', many(size, { version: '3.0.0' }));
        expect(await redis.xlen('asset:sync:events')).toBe(commit === 'c2' ? 3 * size : 2 * size);
        const left = await redis.scan('0', 'MATCH', 'asset:stage:*', 'COUNT', 100_000);
        expect(left[1]).toEqual([]);
        expect(await room.registry.check()).toEqual({ outcome: 'sound' });
      }
    },
  );
});
