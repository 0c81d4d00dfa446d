import { inspect } from 'node:util';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMigrations } from '../../src/store/migrate.ts';
import { GUARDED_ROLE, type PostgresServer, postgresForTests } from '../support/postgres.ts';
import { anEvent } from './archive.ts';
import { aLog, aStore } from './builders.ts';

const postgres = await postgresForTests();

describe.skipIf(postgres.missing !== undefined)('PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await postgres.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test('a password lets in, a wrong one is told and never repeated', async () => {
    const url = new URL(await server.createDatabase(`owner ${GUARDED_ROLE.user}`));
    url.username = GUARDED_ROLE.user;
    url.password = GUARDED_ROLE.password;
    const store = await aStore({ url: url.href });
    expect(store.describe()).not.toContain(GUARDED_ROLE.password);

    url.password = 'not-the-password';
    const { log, lines } = await aLog();
    const refusal = await aStore({ url: url.href, log }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/it refused the login \(password authentication failed for user "guarded"\)/),
    });
    expect(inspect([refusal, lines()], { depth: 9, showHidden: true })).not.toContain('not-the-password');

    url.password = '';
    await expect(aStore({ url: url.href })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('a database or server that is not there is told', async () => {
    const url = await server.createDatabase();
    await expect(aStore({ url: url.replace(/test_\d+/, 'nowhere') })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/no such database/),
    });
    await expect(aStore({ url: 'postgres://localhost:1/reeve' })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/localhost:1\/reeve cannot be used: no server answers there/),
    });
    await expect(aStore({ url: 'postgres://no-such-host.invalid/reeve' })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/host name is not known/),
    });
  });

  test('an encoding that cannot hold every text is refused', async () => {
    const url = await server.createDatabase("encoding 'LATIN1' template template0");
    await expect(aStore({ url })).rejects.toThrow(/its encoding is LATIN1, and reeve needs UTF8/);
  });

  test('a table of another program is left alone', async () => {
    const url = await server.createDatabase();
    await server.query("create table events (theirs text); insert into events values ('kept')", url);

    await expect(aStore({ url })).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringMatching(/relation "events" already exists/),
    });
    expect(await server.query('select * from events', url)).toEqual([{ theirs: 'kept' }]);
    expect(await server.query("select 1 from pg_tables where tablename like 'reeve%'", url)).toEqual([]);
  });

  test('a connection cut in the middle of a transaction fails that transaction only', async () => {
    const store = await aStore({ url: await server.createDatabase() });
    const cut = store.db.transaction().execute(async (tx) => {
      await tx.insertInto('events').values(anEvent()).execute();
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
      await server.query(`select pg_terminate_backend(${rows[0]!.pid}, 5000)`);
      await tx
        .insertInto('events')
        .values(anEvent({ id: 'later' }))
        .execute();
    });

    await expect(cut).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await store.check()).toEqual({ latencyMs: expect.any(Number) });
    expect(await store.db.selectFrom('events').selectAll().execute()).toEqual([]);
  });

  test('a database that became read-only is told by check()', async () => {
    const store = await aStore({ url: await server.createDatabase() });
    // The pool has one connection so far, and check() will use it.
    await sql`set session characteristics as transaction read only`.execute(store.db);

    await expect(store.check()).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/it is read-only/),
    });
  });

  test('a migrator waits for another and then finds the work done', async () => {
    const url = await server.createDatabase();
    const stores = await Promise.all(Array.from({ length: 8 }, () => aStore({ url })));
    const applied = await stores[0]!.db.selectFrom('reeve_migrations').select('name').orderBy('name').execute();
    expect(applied).toEqual((await readMigrations('postgres')).map(({ name }) => ({ name })));
  });
});
