import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { choosePrdFile, inspectPrdFile, makeSample } from '../../src/coordinator/prd/prd-file.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'reeve-prd-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
});

/** A SQLite file with these statements run in it. */
function aFile(name: string, statements: string): string {
  const path = join(dir, name);
  const database = new Sqlite(path);
  database.exec(statements);
  database.close();
  return path;
}

describe('the file that holds the tasks', () => {
  test('is the one that was named, whether it is there or not', () => {
    expect(choosePrdFile('/elsewhere/tasks.db', dir, '/data')).toEqual({ path: '/elsewhere/tasks.db', sample: false });
  });

  test('is prd.db where the daemon was started', () => {
    const path = aFile('prd.db', 'create table tasks (task_id text, title text)');

    expect(choosePrdFile(undefined, dir, '/data')).toEqual({ path, sample: false });
  });

  test('is else a sample in the data directory', () => {
    expect(choosePrdFile(undefined, dir, '/data')).toEqual({ path: '/data/prd.db', sample: true });
  });
});

describe('the sample', () => {
  test('is made once, whole, and never again', async () => {
    const path = join(dir, 'prd.db');

    expect(await makeSample({ path, sample: true })).toBe(true);
    expect(await inspectPrdFile(path)).toEqual({ format: 'A', tasks: expect.any(Number) });
    expect((await inspectPrdFile(path)).tasks).toBeGreaterThan(5);
    expect(await readdir(dir)).toEqual(['prd.db']);
    const before = await readFile(path);
    expect(await makeSample({ path, sample: true })).toBe(false);
    expect(await readFile(path)).toEqual(before);
  });

  test('is made anew where the last attempt was cut off', async () => {
    const path = join(dir, 'prd.db');
    await writeFile(`${path}.new`, 'half a file');

    expect(await makeSample({ path, sample: true })).toBe(true);
    expect(await inspectPrdFile(path)).toMatchObject({ format: 'A' });
  });

  test('is not made of a file that a person named', async () => {
    const path = join(dir, 'theirs.db');

    expect(await makeSample({ path, sample: false })).toBe(false);
    expect(existsSync(path)).toBe(false);
  });
});

describe('looking into a file', () => {
  test('tells the two formats apart', async () => {
    const a = aFile(
      'a.db',
      "create table tasks (task_id text, title text, depends_on text); insert into tasks values ('T', 't', null)",
    );
    const b = aFile('b.db', 'create table tasks (id text, display_id text, title text)');

    expect(await inspectPrdFile(a)).toEqual({ format: 'A', tasks: 1 });
    expect(await inspectPrdFile(b)).toEqual({ format: 'B', tasks: 0 });
  });

  test.each([
    ['is not there', async () => join(dir, 'none.db'), 'no such file'],
    ['is empty', async () => aFile('empty.db', ''), 'tasks table is missing'],
    [
      'has tasks of another kind',
      async () => aFile('other.db', 'create table tasks (name text)'),
      'neither known form',
    ],
    [
      'is no database',
      async () => {
        await writeFile(join(dir, 'text.db'), 'This is not a database, but a text of some length.'.repeat(50));
        return join(dir, 'text.db');
      },
      'not a database',
    ],
    ['is a folder', async () => dir, 'cannot be read'],
  ])('that %s says so', async (_, make, problem) => {
    const path = await make();

    await expect(inspectPrdFile(path)).rejects.toMatchObject({
      code: 'PRD_UNREADABLE',
      message: expect.stringContaining(problem),
      details: { path },
    });
  });

  test('leaves it as it is, and works while another has it open', async () => {
    const path = aFile('shared.db', 'pragma journal_mode = wal; create table tasks (task_id text, title text)');
    const other = new Sqlite(path);
    onTestFinished(() => void other.close());
    other.exec("begin immediate; insert into tasks values ('T', 't')");

    expect(await inspectPrdFile(path)).toEqual({ format: 'A', tasks: 0 });
    other.exec('commit');
    expect(await inspectPrdFile(path)).toEqual({ format: 'A', tasks: 1 });
    expect(other.pragma('journal_mode', { simple: true })).toBe('wal');
  });
});
