import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type AssetRooms, createAssetRooms } from '../../src/asset-rooms.ts';
import { readOutbox } from '../../src/audit/outbox.ts';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config.ts';
import { silentLog } from '../../src/log.ts';
import { operations } from '../../src/operations/index.ts';
import { type Access, type Context, invoke } from '../../src/operations/operation.ts';
import type { Rooms } from '../../src/operations/rooms.ts';
import type { Connection } from '../../src/redis/connection.ts';
import { keyspace } from '../../src/redis/keys.ts';
import { explainAssets } from '../../src/registry/explain-assets.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { openConnection } from '../support/registry.ts';
import { refuseUndeclaredKeys } from '../support/undeclared-keys.ts';
import { until } from '../support/until.ts';

const library = new URL('../../assets/', import.meta.url).pathname;

let server: TestRedis;
let connection: Connection;
let dir: string;
let rooms: AssetRooms;
beforeAll(async () => {
  server = await startTestRedis();
  connection = await openConnection(server);
});
afterAll(async () => {
  await rooms.close();
  await connection.stop();
  await server.stop();
});
beforeEach(async () => {
  await rooms?.close();
  await server.flush();
  dir = await mkdtemp(join(tmpdir(), 'reeve-assets-'));
  await cp(library, dir, { recursive: true });
  const { config } = loadConfig({ flags: { 'assets-dir': dir }, env: {}, cwd: dir });
  const given = { config, connection, mode: 'standalone', clock: systemClock, log: silentLog, fetch, env: {} } as const;
  rooms = createAssetRooms({ ...given, isDirNamed: true, holder: 'test' });
  await sync();
  return async () => {
    await refuseUndeclaredKeys(server.client());
    await rm(dir, { recursive: true, force: true });
  };
});

const sync = () => rooms.sync.ask(undefined, { trigger: 'manual' })[0]!.done;
const ask = (name: string, input: object = {}, access: readonly Access[] = ['read', 'operate', 'decide']) => {
  const operation = operations.find((one) => one.name === name)!;
  const given: Partial<Rooms> = { ...rooms, explain: () => undefined };
  const context: Context = {
    rooms: given as Rooms,
    caller: { id: 'ann', access: new Set(access) },
    signal: new AbortController().signal,
    operations,
  };
  return invoke(operation, context, input) as Promise<Record<string, never>>;
};
const fileAt = (path: string) => join(dir, path);

describe('reading', () => {
  test('pages, filters and finds', async () => {
    expect(await ask('assets.list', { limit: 3 })).toMatchObject({ total: 14, items: { length: 3 } });
    expect(await ask('assets.list', { category: 'prompt' })).toMatchObject({ total: 4 });
    expect(await ask('assets.list', { q: 'http' })).toMatchObject({ items: [{ id: 'http_request' }] });
    expect(await ask('assets.search', { query: '会议' })).toMatchObject({ items: [{ id: 'meeting_notes' }] });
  });

  test('gives one asset in full, with its address', async () => {
    expect(await ask('assets.get', { id: 'http_request' })).toMatchObject({
      uri: 'asset://tool/http_request',
      permissions: ['network'],
      config_schema: [{ name: 'base_url' }, { name: 'token' }, { name: 'timeout_seconds' }],
    });
    await expect(ask('assets.get', { id: 'nope' })).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
    await expect(ask('assets.get', { id: 'a:b*{x}\n' })).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
  });

  test('says of a broken file what is wrong where, and that its last good version is served', async () => {
    await writeFile(fileAt('tools/text_stats/manifest.yaml'), 'id: text_stats\ndescription: a: b\n');
    await sync();
    expect(await ask('assets.invalid')).toMatchObject({
      items: [{ path: 'tools/text_stats/manifest.yaml', status: 'bad', id: 'text_stats', problem: { line: 2 } }],
    });
    expect(await ask('assets.get', { id: 'text_stats' })).toMatchObject({ version: '1.0.0', stale: { status: 'bad' } });
  });
});

describe('changing', () => {
  test('an update is one small change of the file, seen at once, with history and diff', async () => {
    const path = 'tools/http_request/manifest.yaml';
    const before = await readFile(fileAt(path), 'utf8');
    const { github_sha: sha } = await ask('assets.get', { id: 'http_request' });
    const written = await ask('assets.update', { id: 'http_request', set: { version: '1.2.0' }, if_match: `"${sha}"` });
    expect(await readFile(fileAt(path), 'utf8')).toBe(before.replace('1.1.0', '1.2.0'));
    expect(written).toMatchObject({ id: 'http_request', path });
    expect(await ask('assets.get', { id: 'http_request' })).toMatchObject({
      version: '1.2.0',
      github_sha: written.github_sha,
    });
    expect(await ask('assets.versions', { id: 'http_request' })).toMatchObject({
      items: [
        { op: 'changed', version: '1.2.0' },
        { op: 'added', version: '1.1.0' },
      ],
    });
    expect(await ask('assets.diff', { id: 'http_request', a: '1.1.0', b: '1.2.0' })).toMatchObject({
      fields: ['version'],
    });
    await expect(
      ask('assets.update', { id: 'http_request', set: { version: '1.3.0' }, if_match: sha }),
    ).rejects.toMatchObject({ code: 'ASSET_CHANGED', details: { expected: sha, actual: written.github_sha } });
  });

  test('an asset is created from values, and deleted', async () => {
    const manifest = { id: 'ping', version: '1.0.0', category: 'prompt', name: 'Ping', description: 'Says pong' };
    expect(await ask('assets.create', { manifest })).toMatchObject({ path: 'prompts/ping/manifest.yaml' });
    expect(await ask('assets.get', { id: 'ping' })).toMatchObject({ description: 'Says pong' });
    await expect(ask('assets.create', { manifest })).rejects.toMatchObject({ code: 'ASSET_EXISTS' });
    await ask('assets.delete', { id: 'ping' });
    await expect(ask('assets.get', { id: 'ping' })).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
  });

  test('what is not valid, or would change the id, is refused before it is written', async () => {
    const path = fileAt('tools/http_request/manifest.yaml');
    const before = await readFile(path, 'utf8');
    for (const set of [{ version: '2' }, { id: 'other' }, { category: 'thing' }]) {
      await expect(ask('assets.update', { id: 'http_request', set })).rejects.toMatchObject({ code: 'ASSET_INVALID' });
    }
    await expect(ask('assets.create', {})).rejects.toMatchObject({ code: 'ASSET_INVALID' });
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  test('a path that leads out, or that no sync looks at, is refused before it is written', async () => {
    const manifest = { id: 'ping', version: '1.0.0', category: 'prompt', name: 'Ping', description: 'Says pong' };
    for (const path of [
      '../../ping.yaml',
      '/etc/ping.yaml',
      '.git/manifest.yaml',
      'notes/ping.txt',
      'prompts/\u202eping.yaml',
    ]) {
      await expect(ask('assets.create', { manifest, path })).rejects.toMatchObject({ code: 'ASSET_INVALID' });
    }
    await expect(ask('assets.get', { id: 'ping' })).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
  });

  test('says when a guard keeps back what was written, and readers see the version before', async () => {
    const set = { version: '1.9.0', permissions: ['network', 'filesystem', 'shell'] };
    const written = await ask('assets.update', { id: 'http_request', set });
    expect(written).toMatchObject({
      held: {
        id: expect.stringMatching(/^permission-widening-/),
        says: expect.stringContaining('shell'),
        next: expect.stringMatching(/^reeve asset release permission-widening-\S+ --reason/),
      },
    });
    expect((await ask('assets.get', { id: 'http_request' })).version).not.toBe('1.9.0');
  });

  test('needs the right to operate', async () => {
    await expect(ask('assets.delete', { id: 'http_request' }, ['read'])).rejects.toMatchObject({ code: 'DENIED' });
  });
});

test('a mass delete waits, is listed, and goes ahead when somebody releases it', async () => {
  await rm(fileAt('tools'), { recursive: true });
  await sync();
  expect(await ask('assets.list')).toMatchObject({ total: 14 });
  const { items } = (await ask('assets.holds')) as unknown as { items: { id: string; kind: string }[] };
  expect(items).toMatchObject([{ kind: 'mass-delete' }]);
  await expect(ask('assets.release', { id: items[0]!.id, reason: 'x' }, ['read'])).rejects.toMatchObject({
    code: 'DENIED',
  });
  expect(await ask('assets.release', { id: items[0]!.id, reason: 'they moved' })).toMatchObject({
    released: { by: 'ann' },
  });
  await until('the deletions are published', async () => Number((await ask('assets.list')).total) === 7);
  expect(await ask('assets.holds')).toEqual({ items: [] });
  const {
    rows: [row],
  } = await readOutbox(connection, keyspace({ mode: 'standalone' }), 10);
  expect(row?.entry).toMatchObject({
    user: 'ann',
    operation: 'assets.release',
    action: 'release',
    subject: `hold:${items[0]!.id}`,
    from: 'held',
    to: 'released',
    reason: 'they moved',
    service: 'test',
  });
  expect(row?.entry.at).toMatch(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
});

describe('why', () => {
  const why = (ref: string) => explainAssets(rooms.library)(ref, 'ann');

  test('an asset is held back: what is served meanwhile, and who could let it through', async () => {
    const set = { version: '1.9.0', permissions: ['network', 'filesystem', 'shell'] };
    await ask('assets.update', { id: 'http_request', set });
    const held = await why('asset:http_request');
    expect(held).toMatchObject({
      state: 'held',
      says: expect.stringMatching(/^Version 1\.\d+\.\d+ is served, .*; the file is held now: .*shell/),
      holds: [{ kind: 'policy', rule: 'permission-widening', actions: [{ allowed: true }] }],
    });
    expect(await why(held!.holds[0]!.subject)).toMatchObject({ state: 'held', holds: held!.holds });
  });

  test('an asset is served although its file is bad; one that is well has nothing against it', async () => {
    await writeFile(fileAt('tools/http_request/manifest.yaml'), 'id: [');
    await sync();
    expect(await why('asset:http_request')).toMatchObject({ state: 'bad', holds: [] });
    expect(await why('asset:json_query')).toMatchObject({ state: 'served', holds: [] });
    expect(await why('asset:nobody')).toBeUndefined();
    expect(await why('T-1')).toBeUndefined();
  });
});
