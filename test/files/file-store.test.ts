import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { FileStore } from '../../src/files/file-store.ts';
import { folderFiles } from '../../src/files/folder-files.ts';
import { s3Files } from '../../src/files/s3-files.ts';
import { testFolder } from '../support/folder.ts';
import { S3_CREDENTIALS, startTestS3 } from '../support/s3.ts';

function aFolder() {
  const folder = testFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return { dir: folder.path, files: folderFiles({ dir: folder.path, host: 'here' }) };
}

async function aBucket(secretAccessKey = S3_CREDENTIALS.secretAccessKey) {
  const s3 = await startTestS3('estate');
  onTestFinished(() => s3[Symbol.asyncDispose]());
  const files = s3Files({
    ...S3_CREDENTIALS,
    secretAccessKey,
    endpoint: s3.endpoint,
    bucket: 'estate',
    region: 'eu-west-1',
    prefix: 'reeve/',
    clock: systemClock,
    fetch,
  });
  return { s3, files };
}

const makers: readonly (readonly [string, () => Promise<FileStore>])[] = [
  ['a folder', async () => aFolder().files],
  ['an S3-compatible service', async () => (await aBucket()).files],
];

describe.each(makers)('%s', (_, make) => {
  test('gives back what was put there, whole and in parts', async () => {
    const files = await make();
    const bytes = Buffer.from('hello wörld\0\xff', 'latin1');
    await files.put('outputs/T-1/1', bytes);
    expect(await files.read('outputs/T-1/1', { offset: 0, length: 1_000 })).toEqual({ bytes, size: bytes.length });
    expect(await files.read('outputs/T-1/1', { offset: 6, length: 3 })).toEqual({
      bytes: bytes.subarray(6, 9),
      size: bytes.length,
    });
    expect(await files.read('outputs/T-1/1', { offset: 99, length: 3 })).toEqual({
      bytes: Buffer.alloc(0),
      size: bytes.length,
    });
  });

  test('takes the place of what was there, and forgets what is removed, also twice', async () => {
    const files = await make();
    await files.put('stashes/T-1/1', Buffer.from('old'));
    await files.put('stashes/T-1/1', Buffer.from('new'));
    expect((await files.read('stashes/T-1/1', { offset: 0, length: 9 }))?.bytes.toString()).toBe('new');
    await files.remove('stashes/T-1/1');
    await files.remove('stashes/T-1/1');
    expect(await files.read('stashes/T-1/1', { offset: 0, length: 9 })).toBeUndefined();
  });

  test.each([
    '../x',
    'a/../../x',
    '/etc/passwd',
    'a//b',
    '',
    '.hidden',
    'a/b\0c',
    'a/%2e%2e/x',
    'a\\..\\b',
    'x'.repeat(300),
  ])('refuses the key %j before it touches anything', async (key) => {
    const files = await make();
    await expect(files.put(key, Buffer.from('x'))).rejects.toMatchObject({ code: 'FILE_KEY_INVALID' });
    await expect(files.read(key, { offset: 0, length: 1 })).rejects.toMatchObject({ code: 'FILE_KEY_INVALID' });
    await expect(files.remove(key)).rejects.toMatchObject({ code: 'FILE_KEY_INVALID' });
  });
});

test('files in a folder are for their owner alone, and an empty folder goes with its last file', async () => {
  const { dir, files } = aFolder();
  await files.put('outputs/T-1/1', Buffer.from('x'));
  expect(statSync(join(dir, 'outputs/T-1/1')).mode & 0o777).toBe(0o600);
  expect(statSync(join(dir, 'outputs/T-1')).mode & 0o777).toBe(0o700);
  expect(readdirSync(join(dir, 'outputs/T-1'))).toEqual(['1']);
  await files.remove('outputs/T-1/1');
  expect(existsSync(join(dir, 'outputs/T-1'))).toBe(false);
});

test('objects lie under the prefix of the bucket', async () => {
  const { s3, files } = await aBucket();
  await files.put('outputs/T-1/1', Buffer.from('x'));
  expect([...s3.objects.keys()]).toEqual(['/estate/reeve/outputs/T-1/1']);
  expect(s3.refusals).toEqual([]);
});

test('a wrong secret and a service in trouble are told apart from a file that is not there', async () => {
  const { s3, files } = await aBucket('another secret');
  await expect(files.put('outputs/T-1/1', Buffer.from('x'))).rejects.toMatchObject({
    code: 'FILES_UNAVAILABLE',
    message: expect.stringContaining('403 SignatureDoesNotMatch'),
  });
  s3.breaks = 503;
  await expect(files.read('outputs/T-1/1', { offset: 0, length: 1 })).rejects.toMatchObject({
    code: 'FILES_UNAVAILABLE',
    message: expect.stringContaining('503 SlowDown'),
  });
  await s3[Symbol.asyncDispose]();
  await expect(files.remove('outputs/T-1/1')).rejects.toMatchObject({ code: 'FILES_UNAVAILABLE' });
});
