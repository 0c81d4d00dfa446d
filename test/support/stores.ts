import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import type { Store } from '../../src/store/database.ts';
import { aDirectory, aStore } from '../store/builders.ts';
import { type PostgresServer, postgresForTests } from './postgres.ts';

/** The same suite on SQLite and on PostgreSQL, where there is one. Each store is empty and goes with its test. */
export async function onBothStores(suite: (open: () => Promise<Store>) => void): Promise<void> {
  const postgres = await postgresForTests();
  describe('on SQLite', () => {
    suite(async () => aStore({ url: `sqlite:${join(await aDirectory(), 'test.db')}` }));
  });
  describe.skipIf(postgres.missing !== undefined)('on PostgreSQL', () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await postgres.start();
    });
    afterAll(() => server[Symbol.asyncDispose]());
    suite(async () => aStore({ url: await server.createDatabase() }));
  });
}
