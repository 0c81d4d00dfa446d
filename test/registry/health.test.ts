import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Damage } from '../../src/registry/health.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aRegistry, type Files, type TestRegistry, tool } from '../support/registry.ts';
import { undeclaredKeys } from '../support/undeclared-keys.ts';

let server: TestRedis;
let redis: Redis;
let room: TestRegistry;
beforeAll(async () => {
  server = await startTestRedis();
  redis = server.client();
  room = await aRegistry(server);
});
afterAll(async () => {
  await room[Symbol.asyncDispose]();
  await server.stop();
});
beforeEach(async () => {
  await server.flush();
  await room.sync('c1', {
    ...tool('a'),
    ...tool('b', { category: 'prompt' }),
    ...tool('c', { category: 'skill', tags: ['数据'] }),
  });
});

/** All that is served, but for what tells when it was published. */
const contents = async () => {
  const keys = (await redis.keys('asset:*')).filter((key) => !/:(sync|search|blob|stage)/.test(key)).sort();
  return Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      if (type === 'hash') return [key, await redis.hgetall(key)];
      if (type === 'set') return [key, (await redis.smembers(key)).sort()];
      if (type === 'zset') return [key, await redis.zrange(key, 0, '-1')];
      return [key, await redis.get(key)];
    }),
  );
};

describe('somebody', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['deletes a metadata hash', () => redis.del('asset:metadata:a')],
    ['edits a field', () => redis.hset('asset:metadata:a', 'description', 'hacked')],
    ['adds a field', () => redis.hset('asset:metadata:a', 'extra', '1')],
    ['removes a field', () => redis.hdel('asset:metadata:a', 'permissions')],
    [
      'overwrites a hash with another type',
      async () => {
        await redis.del('asset:metadata:a');
        await redis.set('asset:metadata:a', 'x');
      },
    ],
    ['deletes the index', () => redis.del('asset:index')],
    ['edits an index entry', () => redis.hset('asset:index', 'a', '{"id":"a","category":"tool"}')],
    ['adds an index entry', () => redis.hset('asset:index', 'ghost', '{"category":"tool"}')],
    ['deletes a category set', () => redis.del('asset:category:skill')],
    ['adds to a category set', () => redis.sadd('asset:category:tool', 'ghost')],
    ['replaces a category set by a string', () => redis.set('asset:category:tool', 'x')],
    ['deletes the order', () => redis.del('asset:order:prompt')],
    ['deletes the digests', () => redis.del('asset:digests')],
    ['edits a digest', () => redis.hset('asset:digests', 'a', '0'.repeat(32))],
    ['deletes the search words', () => redis.del('asset:search:words:1')],
    ['deletes the search pointer', () => redis.del('asset:search:index')],
    ['changes the count', () => redis.hset('asset:sync:state', 'synced_count', '7')],
    [
      'deletes every metadata hash and the index',
      () => redis.del('asset:metadata:a', 'asset:metadata:b', 'asset:metadata:c', 'asset:index'),
    ],
  ])('%s: it is noticed and put right from the blob cache', async (_name, harm) => {
    const before = await contents();
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
    await harm();
    expect(await room.registry.check()).toMatchObject({ outcome: 'damaged' });
    expect(await room.registry.repair(await room.nextFence())).toMatchObject({ outcome: 'repaired' });
    expect(await room.registry.check()).toEqual({ outcome: 'sound' });
    expect(await contents()).toEqual(before);
    expect(await room.registry.catalogue.search('数据', { limit: 5 })).toMatchObject({ items: [{ id: 'c' }] });
    expect(await undeclaredKeys(redis)).toEqual([]);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['deletes the path records', () => redis.del('asset:sync:paths')],
    ['edits a path record', () => redis.hset('asset:sync:paths', 'tools/a/manifest.yaml', '{"status":"ok"}')],
    ['deletes the state', () => redis.del('asset:sync:state')],
    ['flushes everything', () => server.flush()],
  ])('%s: the source must be listed again', async (_name, harm) => {
    await harm();
    expect(await room.registry.check()).toMatchObject({ outcome: 'lost' });
    expect(await room.registry.repair(await room.nextFence())).toMatchObject({ outcome: 'lost' });
  });
});

test('a repair names the blobs it lacks', async () => {
  const sha = (await redis.hget('asset:metadata:a', 'github_sha'))!;
  await redis.del('asset:metadata:a', `asset:blob:${sha}`);
  expect(await room.registry.repair(await room.nextFence())).toEqual({ outcome: 'missing', shas: [sha] });
});

test('a repair restores the last good version of a file that is bad now', async () => {
  await room.sync('c2', {
    ...tool('b', { category: 'prompt' }),
    ...tool('c', { category: 'skill' }),
    'tools/a/manifest.yaml': '[',
  });
  await redis.hset('asset:metadata:a', 'name', 'hacked');
  await room.registry.repair(await room.nextFence());
  expect(await redis.hget('asset:metadata:a', 'name')).toBe('Name of a');
  expect((await room.registry.path('tools/a/manifest.yaml'))?.status).toBe('bad');
});

test('a repair with an old fencing number changes nothing', async () => {
  await redis.hset('asset:metadata:a', 'name', 'hacked');
  const old = await room.nextFence();
  await room.nextFence();
  expect(await room.registry.repair(old)).toEqual({ outcome: 'stale' });
  expect(await redis.hget('asset:metadata:a', 'name')).toBe('hacked');
});

test('a publish whose command fails inside EXEC owns up to it, and the next check repairs it', async () => {
  await redis.set('asset:sync:changed', 'not a list');
  await room.sync('c2', {
    ...tool('a', { version: '2.0.0' }),
    ...tool('b', { category: 'prompt' }),
    ...tool('c', { category: 'skill' }),
  });
  expect(await redis.hgetall('asset:sync:state')).toMatchObject({ degraded: 'true', digest: 'unknown' });
  await redis.del('asset:sync:changed');
  expect(await room.registry.check()).toMatchObject({ outcome: 'damaged' });
  await room.registry.repair(await room.nextFence());
  expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  expect(await redis.hget('asset:metadata:a', 'version')).toBe('2.0.0');
});

test('in a registry too large to be read at once every deleted hash is found by the next check all the same', async () => {
  const ids = Array.from({ length: 2_600 }, (_, at) => `many_${at}`);
  await room.sync('c2', Object.assign({}, ...ids.map((id) => tool(id))) as Files, { listing: { complete: false } });
  expect(await room.registry.check()).toEqual({ outcome: 'sound' });
  const deleted = ids.slice(0, 2_500);
  await redis.del(deleted.map((id) => `asset:metadata:${id}`));

  const health = await room.registry.check();

  expect(health).toMatchObject({ outcome: 'damaged', isStructural: false });
  expect(new Set((health as Damage).ids)).toEqual(new Set(deleted));
});
