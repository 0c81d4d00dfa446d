import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmod, copyFile, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { ReeveError } from '../../src/errors.ts';
import { anEvent, archive, cursorOf } from './archive.ts';
import { aDirectory, aStore } from './builders.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
const MEGABYTE = 'x'.repeat(1_000_000);

test('the default is reeve.db in the data directory, for its owner only', async () => {
  const dataDir = await aDirectory();
  const store = await aStore({ dataDir });
  await archive(store, [anEvent()]);

  expect(store.describe()).toBe(`sqlite:${join(dataDir, 'reeve.db')}`);
  for (const name of await readdir(dataDir)) expect((await stat(join(dataDir, name))).mode & 0o777).toBe(0o600);
  await store.stop();
  expect(await readdir(dataDir)).toEqual(['reeve.db']);
});

test('commits are synced, foreign keys hold and readers do not block', async () => {
  const store = await aStore({ dataDir: await aDirectory() });
  const pragma = async (name: string) => Object.values((await sql.raw(`pragma ${name}`).execute(store.db)).rows[0]!)[0];
  expect([await pragma('journal_mode'), await pragma('synchronous'), await pragma('foreign_keys')]).toEqual([
    'wal',
    2,
    1,
  ]);
});

describe('a file that is not ours, or not whole, is refused and left as it is', () => {
  test('the database of another program', async () => {
    const path = await aFile();
    new Database(path).exec('create table tasks (id text); create table agents (id text)').close();
    expect(await refused(path)).toEqual({
      code: 'STORE_FOREIGN',
      message: expect.stringMatching(/belongs to another program: it has the tables tasks, agents/),
      untouched: true,
    });
  });

  test('something that is no database', async () => {
    const path = await aFile();
    await writeFile(path, 'Dear diary, '.repeat(1000));
    expect(await refused(path)).toEqual({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/not an SQLite database/),
      untouched: true,
    });
  });

  test('something that is no database, with a write-ahead log of ours beside it', async () => {
    const ours = await aFile();
    await archive(await aStore({ url: ours }), [anEvent()]);
    const path = await aFile();
    await writeFile(path, 'Dear diary, '.repeat(1000));
    await copyFile(`${ours}-wal`, `${path}-wal`);
    expect(await refused(path)).toEqual({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/not an SQLite database/),
      untouched: true,
    });
  });

  test('a few bytes', async () => {
    const path = await aFile();
    await writeFile(path, 'SQLite');
    expect(await refused(path)).toEqual({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/not an SQLite database/),
      untouched: true,
    });
  });

  test('a database cut short', async () => {
    const path = await aFile();
    const store = await aStore({ url: path });
    await archive(store, [anEvent({ payload: MEGABYTE })]);
    await store.stop();
    await truncate(path, 500_000);
    expect(await refused(path)).toEqual({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/damaged or cut short/),
      untouched: true,
    });
  });

  test('a write-ahead log whose database is gone', async () => {
    const path = await aFile();
    const store = await aStore({ url: path });
    await archive(store, [anEvent()]);
    const left = await aFile();
    await copyFile(`${path}-wal`, `${left}-wal`);
    const before = await readFile(`${left}-wal`);

    await expect(aStore({ url: left })).rejects.toThrow(/missing or empty, yet .*-wal holds part of it/);
    expect((await readFile(`${left}-wal`)).equals(before)).toBe(true);
  });

  test('a directory, or a file in none', async () => {
    const dir = await aDirectory();
    await expect(aStore({ url: dir })).rejects.toThrow(/it is a directory/);
    await expect(aStore({ url: join(dir, 'no', 'such.db') })).rejects.toThrow(/no such file or directory/);
    expect(await readdir(dir)).toEqual([]);
  });
});

test('an empty file is a new database', async () => {
  const path = await aFile();
  await writeFile(path, '');
  expect(await (await aStore({ url: path })).check()).toEqual({ latencyMs: expect.any(Number) });
});

test('a file that this user may not write is refused in so many words', async () => {
  const path = await aFile();
  await (await aStore({ url: path })).stop();
  await chmod(path, 0o444);
  await chmod(join(path, '..'), 0o755);

  const { outcome } = await opened(path, 'unprivileged');
  expect(outcome).toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/may not write it/) });
});

test('a full disk is told as one, and the rows before it stay', async () => {
  const store = await aStore({ dataDir: await aDirectory() });
  await archive(store, [anEvent({ id: '1' })]);
  await sql`pragma max_page_count = 20`.execute(store.db);

  await expect(archive(store, [anEvent({ id: '2', payload: MEGABYTE })])).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/the disk is full/),
  });
  expect(await cursorOf(store)).toEqual({ id: '1' });
});

test('a file replaced while it was open is noticed', async () => {
  const path = await aFile();
  const store = await aStore({ url: path });
  await copyFile(path, `${path}.copy`);
  await rm(path);
  await copyFile(`${path}.copy`, path);
  await expect(store.check()).rejects.toThrow(/replaced by another/);
});

test('a program that holds the lock is waited for without holding up the process', async () => {
  const path = await aFile();
  const store = await aStore({ url: path });
  const other = new Database(path);
  other.exec('begin immediate');

  const written = archive(store, [anEvent()]);
  await new Promise(setImmediate);
  other.exec('commit');
  other.close();

  await written;
  expect(await cursorOf(store)).toEqual({ id: anEvent().id });
});

test('a program that keeps the lock is told', async () => {
  const path = await aFile();
  let now = 0;
  const clock: Clock = {
    now: () => now,
    sleep: async () => {
      now += 5_000;
    },
  };
  const store = await aStore({ url: path, clock });
  const other = new Database(path);
  onTestFinished(() => void other.close());
  other.exec('begin immediate');

  await expect(archive(store, [anEvent()])).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/another program keeps it locked/),
  });
  expect(await cursorOf(store)).toBeUndefined();
});

test('a daemon loads the driver of its own database only', async () => {
  expect(await opened(await aFile())).toEqual({ outcome: 'opened', drivers: ['better-sqlite3'] });
  expect(await opened('postgres://localhost:1/reeve')).toMatchObject({
    outcome: { code: 'STORE_UNAVAILABLE' },
    drivers: ['pg'],
  });
});

test('what was committed survives kill -9, and rows and cursor agree', async () => {
  const path = await aFile();
  for (const commits of [5, 40, 1, 90, 17]) {
    const last = await killedAfter(commits, path);
    const store = await aStore({ url: path });
    const ids = (await store.db.selectFrom('events').select('id').execute()).map(({ id }) => Number(id));

    const reached = Number((await cursorOf(store))?.id);
    expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: reached }, (_, i) => i + 1));
    expect(reached).toBeGreaterThanOrEqual(last);
    await store.stop();
  }
});

const aFile = async () => join(await aDirectory(), 'test.db');

async function refused(path: string): Promise<unknown> {
  const before = await fingerprint(path);
  const error = await aStore({ url: path }).catch((thrown: unknown) => thrown as ReeveError);
  if (!(error instanceof ReeveError)) return error;
  return { code: error.code, message: error.message, untouched: (await fingerprint(path)) === before };
}

async function fingerprint(path: string): Promise<string> {
  const digest = createHash('sha256').update(await readFile(path));
  return `${(await stat(path)).mtimeMs} ${digest.digest('hex')}`;
}

const opened = async (...args: string[]) => {
  const { stdout } = await promisify(execFile)(process.execPath, [CHILD, 'open', ...args]);
  return JSON.parse(stdout);
};

/** Starts an archiver, kills it after so many commits, and gives the last id it had told us of. */
async function killedAfter(commits: number, path: string): Promise<number> {
  const child = spawn(process.execPath, [CHILD, 'archive', path], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  let seen = 0;
  let last = 0;
  for await (const line of createInterface(child.stdout)) {
    last = Number(line);
    if (++seen === commits) child.kill('SIGKILL');
  }
  await exited;
  return last;
}
