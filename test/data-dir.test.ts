import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../src/clock.ts';
import { readDaemonFile } from '../src/daemon-file.ts';
import { holdDataDir } from '../src/data-dir.ts';
import { ReeveError } from '../src/errors.ts';
import { silentLog } from '../src/log.ts';
import { runChild, sourceUrl } from './support/child.ts';

let parent: string;
let dir: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'reeve-data-'));
  dir = join(parent, 'deep/data');
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const hold = (where = dir) =>
  holdDataDir({ dir: where, clock: systemClock, log: silentLog, describe: { version: '1.2.3' } });

/** Another daemon: holds the directory, says how that went, and stays until killed. */
const anotherDaemon = (where: string) =>
  runChild(`
    const { holdDataDir } = await import(${JSON.stringify(sourceUrl('data-dir.ts'))});
    const { systemClock } = await import(${JSON.stringify(sourceUrl('clock.ts'))});
    const { silentLog } = await import(${JSON.stringify(sourceUrl('log.ts'))});
    const say = (what) => console.log(JSON.stringify(what));
    const describe = { version: '1.2.3', address: 'http://127.0.0.1:1' };
    await holdDataDir({ dir: ${JSON.stringify(where)}, clock: systemClock, log: silentLog, describe })
      .then(() => say({ outcome: 'held' }), (error) => say({ outcome: error.code, pid: error.details.pid }));
    setInterval(() => {}, 1_000);
  `);

test('creates a directory that only its user may enter', async () => {
  await using held = await hold();

  expect(held.dir).toBe(dir);
  expect((await stat(dir)).mode & 0o777).toBe(0o700);
});

test('tells where the daemon is, from the start until the release', async () => {
  const held = await hold();
  expect(await readDaemonFile(dir)).toMatchObject({ pid: process.pid, address: 'starting', version: '1.2.3' });

  await held.publish('http://127.0.0.1:7420');
  expect(await readDaemonFile(dir)).toMatchObject({ address: 'http://127.0.0.1:7420' });
  expect((await stat(join(dir, 'daemon.json'))).mode & 0o777).toBe(0o600);

  await held.release();
  await held.release();
  expect(await readDaemonFile(dir)).toBeUndefined();
  expect(await readdir(dir)).toEqual(['daemon.lock']);
});

test('refuses a second holder and names the first by process, time and address', async () => {
  await using held = await hold();
  await held.publish('http://127.0.0.1:7420');
  const { since } = (await readDaemonFile(dir))!;

  const refusal = await hold().catch((error: unknown) => error);

  expect(refusal).toBeInstanceOf(ReeveError);
  const details = { dataDir: dir, pid: process.pid, since, address: 'http://127.0.0.1:7420' };
  expect(refusal).toMatchObject({ code: 'DATA_DIR_HELD', details });
});

test('can be held again after a release', async () => {
  await (await hold()).release();

  await using held = await hold();

  expect(held.dir).toBe(dir);
});

test('a daemon in another process keeps us out, and lets us in at once when it is killed', async () => {
  await using other = anotherDaemon(dir);
  expect(await other.next()).toEqual({ outcome: 'held' });
  await expect(hold()).rejects.toMatchObject({ code: 'DATA_DIR_HELD', details: { pid: other.pid } });

  await other.kill('SIGKILL');

  expect(JSON.parse(await readFile(join(dir, 'daemon.json'), 'utf8'))).toMatchObject({ pid: other.pid });
  expect(await readDaemonFile(dir)).toBeUndefined();
  await using held = await hold();
  expect(await readDaemonFile(held.dir)).toMatchObject({ pid: process.pid });
});

test('of many daemons that start at once on what a killed one left, exactly one wins', async () => {
  const killed = anotherDaemon(dir);
  await killed.next();
  await killed.kill('SIGKILL');
  await using children = new AsyncDisposableStack();
  const starters = Array.from({ length: 8 }, () => children.use(anotherDaemon(dir)));

  const outcomes = (await Promise.all(starters.map((each) => each.next()))) as { outcome: string; pid?: number }[];

  const winners = starters.filter((_, index) => outcomes[index]!.outcome === 'held');
  expect(winners).toHaveLength(1);
  const refusals = outcomes.filter(({ outcome }) => outcome !== 'held');
  expect(refusals).toEqual(Array(7).fill({ outcome: 'DATA_DIR_HELD', pid: winners[0]!.pid }));
});

test('of many that start at once in one process, exactly one wins', async () => {
  const attempts = await Promise.allSettled(Array.from({ length: 20 }, () => hold()));

  const held = attempts.filter((each) => each.status === 'fulfilled');
  expect(held).toHaveLength(1);
  await held[0]!.value.release();
});

test.runIf(process.platform === 'linux')(
  'a daemon file whose process number was given to another counts for nothing',
  async () => {
    await mkdir(dir, { recursive: true });
    const told = { pid: process.pid, since: '2026-01-01T00:00:00.000Z', address: 'http://127.0.0.1:1', version: '1' };
    await writeFile(join(dir, 'daemon.json'), JSON.stringify({ ...told, born: '1' }));
    expect(await readDaemonFile(dir)).toBeUndefined();
  },
);

test('a daemon file that is not of its form counts for nothing', async () => {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'daemon.json'), '{"pid":');

  expect(await readDaemonFile(dir)).toBeUndefined();
});

test('says which directory cannot be written and why', async () => {
  const file = join(parent, 'file');
  await writeFile(file, '');

  await expect(hold(join(file, 'data'))).rejects.toMatchObject({
    code: 'DATA_DIR_UNWRITABLE',
    details: { dataDir: join(file, 'data'), problem: expect.stringContaining('ENOTDIR') },
  });
});
