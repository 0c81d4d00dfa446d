import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rememberedListing } from '../../src/registry/plan.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aRegistry, type Files, manifestText, type TestRegistry, tool } from '../support/registry.ts';
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
  await refuseUndeclaredKeys(redis);
  const health = await room.registry.check();
  if (health.outcome !== 'sound') throw new Error(health.says.join('\n'));
  await room[Symbol.asyncDispose]();
});

const status = async (path: string) => (await room.registry.path(path))?.status;
const version = (id: string) => redis.hget(`asset:metadata:${id}`, 'version');
const lastOps = async (count: number) =>
  (await redis.xrevrange('asset:sync:events', '+', '-', 'COUNT', count))
    .map(([, fields]) => Object.fromEntries(fields.flatMap((name, at) => (at % 2 ? [] : [[name, fields[at + 1]]]))))
    .reverse();

describe('a file that breaks', () => {
  const path = 'tools/a/manifest.yaml';

  test('keeps its last good version served, with the error and its line; mending it ends that', async () => {
    await room.sync('c1', { ...tool('a'), ...tool('b') });
    await room.sync('c2', { ...tool('a'), ...tool('b'), [path]: 'id: a\nname: b: c\n' });
    expect(await version('a')).toBe('1.0.0');
    expect(await room.registry.path(path)).toMatchObject({
      status: 'bad',
      id: 'a',
      problem: { code: 'YAML_SYNTAX', line: 2 },
    });
    expect(await redis.hgetall('asset:sync:state')).toMatchObject({
      error_count: '1',
      degraded: 'true',
      last_commit_sha: 'c2',
    });
    expect(JSON.parse((await redis.hget('asset:sync:errors', path))!)).toMatchObject({ status: 'bad', line: 2 });
    await room.sync('c3', { ...tool('a', { version: '1.0.1' }), ...tool('b') });
    expect(await version('a')).toBe('1.0.1');
    expect(await redis.exists('asset:sync:errors')).toBe(0);
    expect(await redis.hget('asset:sync:state', 'degraded')).toBe('false');
  });

  test('and never was good is listed, not invisible', async () => {
    await room.sync('c1', { ...tool('b'), [path]: 'id: "a b"\n' });
    expect(await room.registry.path(path)).toMatchObject({ status: 'bad', problem: { code: 'BAD_ID' } });
    expect(await redis.hget('asset:sync:state', 'degraded')).toBe('false');
  });

  test('and then goes is gone', async () => {
    await room.sync('c1', { ...tool('a'), ...tool('b'), ...tool('c'), ...tool('d') });
    await room.sync('c2', { ...tool('b'), ...tool('c'), ...tool('d'), [path]: '[' });
    await room.sync('c3', { ...tool('b'), ...tool('c'), ...tool('d') });
    expect(await redis.exists('asset:metadata:a')).toBe(0);
  });

  test('a listing that is not complete deletes nothing', async () => {
    await room.sync('c1', { ...tool('a'), ...tool('b') });
    await room.sync('c2', tool('a', { version: '1.1.0' }), { listing: { complete: false } });
    expect(await version('a')).toBe('1.1.0');
    expect(await version('b')).toBe('1.0.0');
    expect(await status('tools/b/manifest.yaml')).toBe('ok');
  });

  test('links and submodules are skipped and never followed', async () => {
    const entries = new Map([
      ['tools/link/manifest.yaml', { sha: 'a'.repeat(40), kind: 'symlink', size: 9 } as const],
      ['tools/sub/manifest.yaml', { sha: 'b'.repeat(40), kind: 'submodule', size: 0 } as const],
      ['tools/big/manifest.yaml', { sha: 'c'.repeat(40), kind: 'file', size: 10_000_000 } as const],
    ]);
    await room.sync('c1', {}, { listing: { entries } });
    expect(await status('tools/link/manifest.yaml')).toBe('skipped');
    expect(await status('tools/sub/manifest.yaml')).toBe('skipped');
    expect(await room.registry.path('tools/big/manifest.yaml')).toMatchObject({ problem: { code: 'TOO_LARGE' } });
  });

  test('an entry file that is not in the tree is a warning', async () => {
    const files = tool('a', { runtime: { language: 'python', entry: 'main.py' } });
    await room.sync('c1', files, { listing: { hasFile: () => false } });
    expect(await room.registry.path(path)).toMatchObject({ status: 'ok', warnings: [{ code: 'ENTRY_MISSING' }] });
  });
});

describe('identity', () => {
  const at = (path: string, id: string, more: Readonly<Record<string, unknown>> = {}): Files => ({
    [path]: manifestText(id, more),
  });

  test('of two files with one id the first path has it; the order of syncs changes nothing; it is promoted when free', async () => {
    const [first, second] = ['tools/1.yaml', 'tools/2.yaml'];
    const files = { ...at(second, 'a', { name: 'Second' }), ...at(first, 'a', { name: 'First' }) };
    for (const commit of ['c1', 'c2', 'c3']) {
      await room.sync(commit, files);
      expect(await redis.hget('asset:metadata:a', 'github_path')).toBe(first);
      expect(await status(second)).toBe('conflict');
    }
    expect(await redis.llen('asset:sync:changed')).toBe(1);
    expect(await room.registry.path(first)).toMatchObject({ warnings: [{ code: 'DUPLICATE_ID' }] });
    await room.sync('c4', at(second, 'a', { name: 'Second' }));
    expect(await redis.hget('asset:metadata:a', 'name')).toBe('Second');
    expect(await status(second)).toBe('ok');
  });

  test('who has the id keeps it, although a path that comes first claims it later', async () => {
    await room.sync('c1', at('tools/m.yaml', 'a'));
    await room.sync('c2', { ...at('tools/m.yaml', 'a'), ...at('tools/a.yaml', 'a', { name: 'New' }) });
    expect(await redis.hget('asset:metadata:a', 'github_path')).toBe('tools/m.yaml');
    expect(await status('tools/a.yaml')).toBe('conflict');
  });

  test('ids that differ only in case are one id', async () => {
    await room.sync('c1', { ...at('tools/1.yaml', 'Ping'), ...at('tools/2.yaml', 'ping') });
    expect(await redis.hkeys('asset:index')).toEqual(['Ping']);
    expect(await status('tools/2.yaml')).toBe('conflict');
  });

  test('a moved file is the same asset: told as moved, created_at kept', async () => {
    await room.sync('c1', { ...at('tools/old.yaml', 'a'), ...tool('b') });
    const created = await redis.hget('asset:metadata:a', 'created_at');
    await room.sync('c2', { ...at('tools/new.yaml', 'a'), ...tool('b') });
    expect(await lastOps(1)).toMatchObject([
      { op: 'moved', id: 'a', path: 'tools/new.yaml', from_path: 'tools/old.yaml' },
    ]);
    expect(await redis.hgetall('asset:metadata:a')).toMatchObject({
      github_path: 'tools/new.yaml',
      created_at: created,
    });
  });

  test('an id renamed in place goes and comes in one step, and names its successor', async () => {
    await room.sync('c1', { ...at('tools/x.yaml', 'old_name'), ...tool('b'), ...tool('c') });
    await room.sync('c2', { ...at('tools/x.yaml', 'new_name'), ...tool('b'), ...tool('c') });
    expect(await redis.hkeys('asset:index')).toEqual(expect.arrayContaining(['new_name', 'b', 'c']));
    expect(await lastOps(2)).toMatchObject([
      { op: 'added', id: 'new_name' },
      { op: 'removed', id: 'old_name', successor: 'new_name' },
    ]);
  });

  test('two files that swap their ids swap them in one step', async () => {
    await room.sync('c1', { ...at('tools/1.yaml', 'a', { name: 'One' }), ...at('tools/2.yaml', 'b', { name: 'Two' }) });
    await room.sync('c2', { ...at('tools/1.yaml', 'b', { name: 'One' }), ...at('tools/2.yaml', 'a', { name: 'Two' }) });
    expect(await redis.hget('asset:metadata:a', 'name')).toBe('Two');
    expect(await redis.hget('asset:metadata:b', 'name')).toBe('One');
  });

  test('a file that takes a foreign id goes on serving what it served', async () => {
    await room.sync('c1', { ...at('tools/1.yaml', 'a'), ...at('tools/2.yaml', 'b') });
    await room.sync('c2', { ...at('tools/1.yaml', 'a'), ...at('tools/2.yaml', 'a') });
    expect(await room.registry.path('tools/2.yaml')).toMatchObject({ status: 'conflict', id: 'b' });
    expect(await version('b')).toBe('1.0.0');
  });
});

describe('guards', () => {
  const ten = Object.assign({}, ...Array.from({ length: 10 }, (_, at) => tool(`t${at}`))) as Files;
  const without = (count: number): Files => Object.fromEntries(Object.entries(ten).slice(count));
  const releaseAll = async (by = 'ann') => {
    for (const { id } of await room.registry.holds()) await room.registry.release(id, by, 'it is meant');
  };

  test('three of ten may go, four wait for a person, and go when released without asking the source', async () => {
    await room.sync('c1', ten);
    await room.sync('c2', without(3));
    expect(await redis.hlen('asset:index')).toBe(7);
    await room.sync('c3', without(6));
    expect(await redis.hlen('asset:index')).toBe(7);
    expect(await room.registry.holds()).toMatchObject([{ kind: 'mass-delete', assets: ['t3', 't4', 't5'] }]);
    expect(await status('tools/t3/manifest.yaml')).toBe('held');
    expect(await redis.hget('asset:sync:state', 'last_commit_sha')).toBe('c3');

    await releaseAll();
    expect(await room.registry.hasReleased()).toBe(true);
    const known = await room.registry.known();
    const plan = await room.registry.plan(known, rememberedListing(known), new Map());
    const fence = await room.nextFence();
    await room.registry.publish({
      plan,
      source: 'test',
      previousCommit: 'c3',
      fence,
      configFingerprint: known.configFingerprint!,
    });
    expect(await redis.hlen('asset:index')).toBe(4);
    expect(await room.registry.holds()).toEqual([]);
  });

  test('everything at once always waits, and a restored file ends the hold', async () => {
    await room.sync('c1', tool('only'));
    await room.sync('c2', {});
    expect(await version('only')).toBe('1.0.0');
    expect(await room.registry.holds()).toHaveLength(1);
    await room.sync('c3', tool('only'));
    expect(await room.registry.holds()).toEqual([]);
    expect(await status('tools/only/manifest.yaml')).toBe('ok');
  });

  test('an asset that asks for more waits alone; the release is for that content only', async () => {
    await room.sync('c1', { ...tool('a'), ...tool('b') });
    const wider = {
      ...tool('a', { version: '2.0.0', permissions: ['network', 'write_files'] }),
      ...tool('b', { version: '2.0.0' }),
    };
    await room.sync('c2', wider);
    expect(await version('a')).toBe('1.0.0');
    expect(await version('b')).toBe('2.0.0');
    const [hold] = await room.registry.holds();
    expect(hold).toMatchObject({ kind: 'permission-widening', says: expect.stringContaining('write_files') });
    await releaseAll();
    const other = { ...wider, ...tool('a', { version: '2.0.1', permissions: ['network', 'write_files', 'root'] }) };
    await room.sync('c3', other);
    expect(await version('a')).toBe('1.0.0');
    await releaseAll();
    await room.sync('c4', other);
    expect(await version('a')).toBe('2.0.1');
    expect(await room.registry.holds()).toEqual([]);
  });

  test('a rewritten history waits as a whole, and nothing of it is published until it is released', async () => {
    await room.sync('c1', { ...tool('a'), ...tool('b') });
    const files = { ...tool('a', { version: '3.0.0' }), ...tool('b') };
    const rewrite = () => room.sync('x1', files, { listing: { rewritesHistory: true } });
    expect(await rewrite()).toMatchObject({ outcome: 'held' });
    expect(await rewrite()).toMatchObject({ outcome: 'held' });
    expect(await redis.hget('asset:sync:state', 'last_commit_sha')).toBe('c1');
    expect(await room.registry.holds()).toHaveLength(1);
    await releaseAll();
    expect(await rewrite()).toMatchObject({ outcome: 'published' });
    expect(await version('a')).toBe('3.0.0');
  });
});

test('a changed fingerprint reads every file again and publishes only what reads differently', async () => {
  await room.sync('c1', { ...tool('a'), ...tool('b') });
  const again = await room.sync('c1', { ...tool('a'), ...tool('b') }, { fingerprint: 'f'.repeat(32) });
  expect(again.parsed.size).toBe(2);
  expect(again).toMatchObject({ outcome: 'published', changed: 0 });
});
