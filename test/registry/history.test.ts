import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { Library } from '../../src/registry/library.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { aRegistry, type Files, type TestRegistry, tool } from '../support/registry.ts';
import { refuseUndeclaredKeys } from '../support/undeclared-keys.ts';

const COMMITS = ['1', '2', '3', '4'].map((digit) => digit.repeat(40)) as [string, string, string, string];
const [C1, C2, C3, C4] = COMMITS;

let server: TestRedis;
let redis: Redis;
let room: TestRegistry;
let library: Library;
beforeAll(async () => {
  server = await startTestRedis();
  redis = server.client();
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.flush();
  room = await aRegistry(server);
  library = new Library([{ name: 'main', registry: room.registry }]);
  const rest = { ...tool('x'), ...tool('y'), ...tool('z') };
  await room.sync(C1, { ...rest, ...tool('a', { description: 'First' }) });
  await room.sync(C2, { ...rest, ...tool('a', { version: '1.1.0', description: 'Second' }) }, { author: 'ann' });
  await room.sync(C3, { ...rest, ...tool('a', { version: '1.1.0', description: 'Third, same version' }) });
  await room.sync(C4, rest);
});
afterEach(async () => {
  await refuseUndeclaredKeys(redis);
  await room[Symbol.asyncDispose]();
});

test('tells what happened to an asset, and flags a version that was released with other bytes', async () => {
  expect(await library.versions('a')).toMatchObject([
    { op: 'added', version: '1.0.0', commit: C1, same_version_other_bytes: false },
    { op: 'changed', version: '1.1.0', commit: C2, author: 'ann', same_version_other_bytes: false },
    { op: 'changed', version: '1.1.0', commit: C3, same_version_other_bytes: true },
    { op: 'removed', commit: C4 },
  ]);
  expect(JSON.parse((await redis.get('asset:history:a:1.1.0'))!)).toMatchObject([{ commit: C2 }, { commit: C3 }]);
});

test.each([
  [C1, 'First'],
  [C2.slice(0, 7), 'Second'],
  [C3, 'Third, same version'],
])('shows the asset as of commit %s', async (commit, description) => {
  expect(await library.get('a', { asOf: commit })).toMatchObject({ description });
});

test('was not there after its removal, and no commit is made up', async () => {
  await expect(library.get('a', { asOf: C4 })).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
  await expect(library.get('a', { asOf: 'abcdef0' })).rejects.toMatchObject({ code: 'NO_SUCH_COMMIT' });
  expect(await library.get('x', { asOf: C4 })).toMatchObject({ id: 'x' });
});

test('shows an old version', async () => {
  expect(await library.get('a', { version: '1.0.0' })).toMatchObject({ description: 'First' });
  await expect(library.get('a', { version: '9.9.9' })).rejects.toMatchObject({ code: 'NO_SUCH_ASSET' });
});

test('says what lies between two versions, and between two commits of one version', async () => {
  const between = await library.diff('a', '1.0.0', C2);
  expect(between).toMatchObject({ differs: true, fields: ['version', 'description'] });
  expect(between.patch).toContain('-description: "First"\n+description: "Second"');
  expect(await library.diff('a', C2, C3)).toMatchObject({ differs: true, fields: ['description'] });
  expect(await library.diff('a', '1.1.0', C3)).toMatchObject({ differs: false, patch: '' });
  await expect(library.diff('a', '1.0.0', '7.0.0')).rejects.toMatchObject({ code: 'NO_SUCH_VERSION' });
});

test('owns up when the old content is no longer kept', async () => {
  const [first] = await library.versions('a');
  await redis.del(`asset:blob:${first!.sha}`);
  await expect(library.get('a', { asOf: C1 })).rejects.toMatchObject({ code: 'BLOB_GONE' });
});

test('knows a version from the moment of a large publish on, and notes the release once, though told only later', async () => {
  const many = Object.assign({}, ...Array.from({ length: 250 }, (_, at) => tool(`many_${at}`))) as Files;
  const breakOff = (step: string) => {
    if (step === 'committed') throw new Error('killed');
  };
  await expect(room.sync(C1, many, { progress: breakOff })).rejects.toThrow('killed');
  expect(await redis.get('asset:history:many_7:1.0.0')).toBeNull();
  expect(await library.get('many_7', { version: '1.0.0' })).toMatchObject({ id: 'many_7' });

  await room.registry.tellRest();
  await room.registry.tellRest();

  expect(JSON.parse((await redis.get('asset:history:many_7:1.0.0'))!)).toMatchObject([{ commit: C1 }]);
});
