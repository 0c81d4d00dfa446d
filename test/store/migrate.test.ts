import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readMigrations } from '../../src/store/migrate.ts';
import { aDirectory, aStore, withMigrations } from './builders.ts';

const REAL = new URL('../../src/store/migrations/', import.meta.url);

test('migrations come in the order of their names, with a twin only for its dialect', async () => {
  const folder = await withMigrations({
    '9010-ten.sql': 'ten',
    '9002-two.sql': 'two',
    '9002-two.postgres.sql': 'two for PostgreSQL',
    'notes.txt': 'no migration',
  });

  const texts = async (dialect: 'sqlite' | 'postgres') =>
    (await readMigrations(dialect, folder)).slice(-2).map(({ name, text }) => [name, text]);
  expect(await texts('sqlite')).toEqual([
    ['9002-two', 'two'],
    ['9010-ten', 'ten'],
  ]);
  expect(await texts('postgres')).toEqual([
    ['9002-two', 'two for PostgreSQL'],
    ['9010-ten', 'ten'],
  ]);
});

test('line ends do not make another text', async () => {
  const [unix, dos] = await Promise.all(
    ['a;\nb;\n', 'a;\r\nb;\r\n'].map(async (text) =>
      readMigrations('sqlite', await withMigrations({ '9001-x.sql': text })),
    ),
  );
  expect(dos).toEqual(unix);
});

test('every migration is numbered once and has a text for each dialect', async () => {
  const files = (await readdir(REAL)).filter((file) => file.endsWith('.sql'));
  const names = (await readMigrations('sqlite')).map(({ name }) => name);
  expect((await readMigrations('postgres')).map(({ name }) => name)).toEqual(names);
  expect(new Set(names.map((name) => Number.parseInt(name, 10))).size).toBe(names.length);
  const known = new Set(names.flatMap((name) => [`${name}.sql`, `${name}.postgres.sql`]));
  expect(files.filter((file) => !known.has(file))).toEqual([]);
});

test('another migration under a number that was used is an altered one', async () => {
  const url = `sqlite:${join(await aDirectory(), 'test.db')}`;
  const theirs = await withMigrations({ '9001-theirs.sql': 'create table theirs (x text);' });
  const ours = await withMigrations({ '9001-ours.sql': 'create table ours (x text);' });
  await (await aStore({ url, migrations: theirs })).stop();

  await expect(aStore({ url, migrations: ours })).rejects.toMatchObject({
    code: 'STORE_ALTERED',
    details: { migration: '9001-theirs' },
  });
});
