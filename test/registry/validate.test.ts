import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { validateFiles } from '../../src/registry/validate.ts';
import { manifestText } from '../support/registry.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'reeve-validate-'));
  for (const folder of ['tools/a', 'tools/b', 'tools/c', 'node_modules/x'])
    await mkdir(join(dir, folder), { recursive: true });
  await writeFile(join(dir, 'tools/a/manifest.yaml'), manifestText('a'));
  await writeFile(join(dir, 'tools/a/values.yaml'), 'not: a manifest\n');
  await writeFile(join(dir, 'node_modules/x/manifest.yaml'), '[');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test('a folder of good manifests is valid; other files and installed packages are left alone', async () => {
  expect(await validateFiles(['.'], dir)).toEqual({ files: 2, assets: 1, findings: [] });
});

test('finds errors with their place, double ids, and entry files that are not there', async () => {
  await writeFile(join(dir, 'tools/b/manifest.yaml'), 'id: b\nname: x: y\n');
  await writeFile(
    join(dir, 'tools/c/manifest.yaml'),
    manifestText('A', { runtime: { language: 'bash', entry: 'run.sh' } }),
  );
  const { findings } = await validateFiles(['.'], dir);
  expect(findings).toMatchObject([
    { path: 'tools/b/manifest.yaml', severity: 'error', line: 2, column: 7, hint: expect.stringContaining('Quote') },
    { path: 'tools/c/manifest.yaml', severity: 'error', code: 'DUPLICATE_ID' },
    { path: 'tools/c/manifest.yaml', severity: 'warning', code: 'ENTRY_MISSING' },
  ]);
});

test('a file that was named is meant to be a manifest', async () => {
  expect(await validateFiles(['tools/a/values.yaml'], dir)).toMatchObject({ findings: [{ code: 'MISSING_FIELD' }] });
});

test('a path that is not there is a wrong call, not an invalid asset', async () => {
  await expect(validateFiles(['nowhere'], dir)).rejects.toMatchObject({ code: 'USAGE' });
});
