import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/store/database.ts';
import { readMigrations } from '../../src/store/migrate.ts';
import { anEvent, archive, cursorOf } from '../store/archive.ts';
import { aDirectory, aLog, aStore, withMigrations } from '../store/builders.ts';
import { type PostgresServer, postgresForTests } from '../support/postgres.ts';

/** An empty database that can be made to go away and come back. */
interface TestDatabase {
  readonly url: string;
  readonly goAway: () => Promise<void>;
  readonly comeBack: () => Promise<void>;
}

const postgres = await postgresForTests();
const ours = (await readMigrations('sqlite')).map(({ name }) => name);

describe('SQLite', () => {
  conforms(async () => {
    const file = join(await aDirectory(), 'test.db');
    return {
      url: `sqlite:${file}`,
      goAway: () => rename(file, `${file}.away`),
      comeBack: () => rename(`${file}.away`, file),
    };
  });
});

describe.skipIf(postgres.missing !== undefined)('PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await postgres.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  conforms(async () => ({
    url: await server.createDatabase(),
    goAway: () => server.stop(),
    comeBack: () => server.start(),
  }));
});

function conforms(aDatabase: () => Promise<TestDatabase>) {
  test('migrates an empty database', async () => {
    const { url } = await aDatabase();
    const { log, lines } = await aLog();
    const store = await aStore({ url, log });

    expect(await appliedTo(store)).toEqual(ours);
    expect(lines()).toContainEqual(expect.objectContaining({ msg: 'migration applied', migration: '0001-events' }));
    expect(await store.db.selectFrom('events').selectAll().execute()).toEqual([]);
    expect(await store.db.selectFrom('event_cursors').selectAll().execute()).toEqual([]);
  });

  test('migrating twice changes nothing', async () => {
    const { url } = await aDatabase();
    const first = await aStore({ url });
    await archive(first, [anEvent()]);
    const before = await first.db.selectFrom('reeve_migrations').selectAll().execute();
    await first.stop();

    const { log, lines } = await aLog();
    const second = await aStore({ url, log });

    expect(await second.db.selectFrom('reeve_migrations').selectAll().execute()).toEqual(before);
    expect(lines().map(({ msg }) => msg)).not.toContain('migration applied');
    expect(await second.db.selectFrom('events').selectAll().execute()).toEqual([anEvent()]);
  });

  test('a later version adds what is missing', async () => {
    const { url } = await aDatabase();
    await (await aStore({ url })).stop();
    const migrations = await withMigrations({
      '9001-more.sql': 'create table more (x text); create table most (x text);',
    });

    expect(await appliedTo(await aStore({ url, migrations }))).toEqual([...ours, '9001-more']);
  });

  test('refuses a newer schema', async () => {
    const { url } = await aDatabase();
    const migrations = await withMigrations({ '9001-future.sql': 'create table future (x text);' });
    await (await aStore({ url, migrations })).stop();

    await expect(aStore({ url })).rejects.toMatchObject({
      code: 'STORE_NEWER',
      details: { found: '9001-future', known: ours.at(-1) },
    });
  });

  test('refuses an altered migration', async () => {
    const { url } = await aDatabase();
    await (await aStore({ url })).stop();
    const altered = 'create table events (x text);';
    const migrations = await withMigrations({ '0001-events.sql': altered, '0001-events.postgres.sql': altered });

    await expect(aStore({ url, migrations })).rejects.toMatchObject({
      code: 'STORE_ALTERED',
      details: { migration: '0001-events' },
    });
  });

  test('two migrators at once apply once', async () => {
    const { url } = await aDatabase();
    const migrations = await withMigrations({
      '9001-b.sql': 'create table b (x text);',
      '9002-c.sql': 'create table c (x text);',
    });
    const processes = await Promise.all([1, 2, 3].map(() => aMigrator(url, migrations)));
    const here = await aLog();
    const stores = Array.from({ length: 3 }, () => aStore({ url, migrations, log: here.log }));
    const there = await Promise.all(processes.map((go) => go()));

    const [store] = await Promise.all(stores);
    const applied = [...here.lines().flatMap(({ migration }) => migration ?? []), ...there.flat()]
      .map(String)
      .toSorted();
    expect(applied).toEqual([...ours, '9001-b', '9002-c']);
    expect(await appliedTo(store!)).toEqual(applied);
  });

  test('a failing migration leaves nothing behind', async () => {
    const { url } = await aDatabase();
    const broken = "create table half (x text); insert into half values ('written'); insert into nowhere values (1);";
    const migrations = await withMigrations({ '9001-broken.sql': broken });

    await expect(aStore({ url, migrations })).rejects.toMatchObject({
      code: 'STORE_MIGRATION_FAILED',
      message: expect.stringMatching(/9001-broken could not be applied .*nowhere/),
    });

    const store = await aStore({ url });
    expect(await appliedTo(store)).toEqual(ours);
    await expect(sql`select * from half`.execute(store.db)).rejects.toThrow(/half/);
  });

  test('rows and cursor are written together or not at all', async () => {
    const { url } = await aDatabase();
    const store = await aStore({ url });
    await archive(store, [anEvent({ id: '1' }), anEvent({ id: '2' })]);

    await expect(archive(store, [anEvent({ id: '3' }), anEvent({ id: '2' }), anEvent({ id: '4' })])).rejects.toThrow(
      /unique/i,
    );
    const late = store.db.transaction().execute(async (tx) => {
      await tx
        .insertInto('events')
        .values(anEvent({ id: '5' }))
        .execute();
      throw new Error('the archiver failed');
    });
    await expect(late).rejects.toThrow('the archiver failed');

    expect(await idsIn(store)).toEqual(['1', '2']);
    expect(await cursorOf(store)).toEqual({ id: '2' });
  });

  test('writers at once lose nothing', async () => {
    const { url } = await aDatabase();
    const streams = ['a', 'b', 'c'];
    const stores = await Promise.all(streams.map(() => aStore({ url })));
    const ids = Array.from({ length: 30 }, (_, i) => String(i + 1));

    await Promise.all(ids.flatMap((id) => streams.map((stream, i) => archive(stores[i]!, [anEvent({ stream, id })]))));

    for (const stream of streams) expect((await idsIn(stores[0]!, stream)).toSorted()).toEqual(ids.toSorted());
  });

  test('unicode and 1 MB payloads survive', async () => {
    const { url } = await aDatabase();
    const store = await aStore({ url });
    const text = '\u0000\u001f "quotes" \\ naïve Ω 日本語 🏴󠁧󠁢󠁳󠁣󠁴󠁿 \u2028 \ud83d\ude00';
    const row = anEvent({
      source: 'Zoë 日本 🤖',
      payload: JSON.stringify({ text, filler: 'ü🙂x'.repeat(150_000) }),
    });
    expect(Buffer.byteLength(row.payload)).toBeGreaterThan(1_000_000);
    await archive(store, [row]);
    await store.stop();

    const again = await aStore({ url });
    const found = await again.db.selectFrom('events').selectAll().executeTakeFirstOrThrow();
    expect(found).toEqual(row);
    expect(JSON.parse(found.payload).text).toBe(text);
  });

  test('can be stopped and started again', async () => {
    const { url } = await aDatabase();
    const store = await aStore({ url });
    await archive(store, [anEvent()]);
    await Promise.all([store.stop(), store.stop(), store.start(), store.start()]);
    expect(await idsIn(store)).toHaveLength(1);

    await store.stop();
    expect(() => store.db).toThrow(/cannot be used: it is not open/);
    await expect(store.check()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('check() says what is wrong when the database goes away', async () => {
    const { url, goAway, comeBack } = await aDatabase();
    const store = await aStore({ url });
    expect(await store.check()).toEqual({ latencyMs: expect.any(Number) });

    await goAway();
    await expect(store.check()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/cannot be used: (there is no such file|no server answers there)/),
    });

    await comeBack();
    expect(await store.check()).toEqual({ latencyMs: expect.any(Number) });
  });
}

const appliedTo = async (store: Store): Promise<string[]> =>
  (await store.db.selectFrom('reeve_migrations').select('name').orderBy('name').execute()).map(({ name }) => name);

const idsIn = async (store: Store, stream = 'events'): Promise<string[]> =>
  (await store.db.selectFrom('events').select('id').where('stream', '=', stream).orderBy('id').execute()).map(
    ({ id }) => id,
  );

/** A process that is ready to migrate; calling what it returns lets it, and gives what it applied. */
async function aMigrator(url: string, migrations: URL): Promise<() => Promise<string[]>> {
  const script = fileURLToPath(new URL('../store/child.ts', import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [script, 'migrate', url, migrations.href], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface(child.stdout!);
  await once(lines, 'line');
  return async () => {
    const answer = once(lines, 'line');
    child.stdin!.write('go\n');
    const [line] = await answer;
    return JSON.parse(line);
  };
}
