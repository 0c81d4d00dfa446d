import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { dataDirCheck, nodeCheck, portCheck } from '../../../src/system/checks/host.ts';
import { runChild, sourceUrl } from '../../support/child.ts';
import { freePort } from '../../support/redis-process.ts';

async function aFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-host-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

test.each([
  ['24.11.0', 'ok'],
  ['24.21.0', 'ok'],
  ['26.0.0', 'ok'],
  ['24.10.9', 'fail'],
  ['20.20.1', 'fail'],
])('Node %s is %s', async (version, result) => {
  expect(await nodeCheck(version).run()).toMatchObject([{ result }]);
});

test('a data directory that can be written, or made, is fine', async () => {
  const dir = await aFolder();

  expect(await dataDirCheck(dir).run()).toMatchObject([{ result: 'ok', says: expect.stringContaining('GiB free') }]);
  expect(await dataDirCheck(join(dir, 'not/yet/there')).run()).toMatchObject([{ result: 'ok' }]);
});

test('a data directory that is a file, or lies in one, is not', async () => {
  const file = join(await aFolder(), 'file');
  await writeFile(file, '');

  for (const path of [file, join(file, 'data')]) {
    expect(await dataDirCheck(path).run()).toMatchObject([{ result: 'fail', says: `${file} is a file, not a folder` }]);
  }
});

test('a data directory that may not be written is named, with how to get it', async () => {
  const dir = await aFolder();
  const closed = join(dir, 'closed');
  await mkdir(closed);
  await Promise.all([chmod(dir, 0o755), chmod(closed, 0o555)]);
  // Root may write anywhere, unless it gives up that very right.
  const rights = '-dac_override,-dac_read_search';
  const as = process.getuid?.() === 0 ? ['setpriv', `--bounding-set=${rights}`, `--inh-caps=${rights}`, '--'] : [];
  const code = `
    const { dataDirCheck } = await import(${JSON.stringify(sourceUrl('system/checks/host.ts'))});
    console.log(JSON.stringify(await dataDirCheck(${JSON.stringify(join(closed, 'data'))}).run()));`;
  await using child = runChild(code, { as });

  expect(await child.next()).toMatchObject([
    { result: 'fail', says: expect.stringMatching(/EACCES/), fix: expect.stringContaining(`chown $(id -u) ${closed}`) },
  ]);
});

test('a free port is free, and one that another program has is not', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;

  expect(await portCheck('127.0.0.1', await freePort(), undefined).run()).toMatchObject([{ result: 'ok' }]);
  expect(await portCheck('127.0.0.1', 0, undefined).run()).toMatchObject([{ result: 'ok' }]);
  expect(await portCheck('127.0.0.1', port, undefined).run()).toMatchObject([
    {
      result: 'fail',
      says: expect.stringContaining('another program has it'),
      fix: expect.stringContaining(`:${port}`),
    },
  ]);
  expect(await portCheck('127.0.0.1', port, `http://127.0.0.1:${port}`).run()).toMatchObject([{ result: 'ok' }]);
});
