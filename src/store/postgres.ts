import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely';
import type { Pool } from 'pg';
import { ReeveError, reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { guarded } from './guard.ts';
import type { OpenDatabase } from './open-database.ts';
import { postgresProblem } from './postgres-problem.ts';
import type { Tables } from './schema.ts';
import type { PostgresTarget } from './target.ts';

const POOL = {
  application_name: 'reeve',
  max: 5,
  connectionTimeoutMillis: 5_000,
  keepAlive: true,
  // A server that vanished without a word would otherwise hold its caller for as long as TCP tries: a quarter of an hour.
  query_timeout: 120_000,
};

/** Opens a pool and one connection of it, so that a wrong address or password is known at once. */
export async function openPostgres(target: PostgresTarget, { log }: { readonly log: Logger }): Promise<OpenDatabase> {
  const { address } = target;
  const pool = await createPool(target, log);
  const db = new Kysely<Tables>({
    dialect: guarded(new PostgresDialect({ pool }), {
      connect: (run) => run().catch((error: unknown) => rethrow(address, error, reason(error))),
      execute: (run) => run().catch((error: unknown) => rethrow(address, error)),
    }),
  });
  try {
    await refuseEncoding(db, address);
  } catch (error) {
    await pool.end();
    throw error;
  }
  return {
    address,
    db,
    column: async (query) => {
      const { rows } = await db.executeQuery<Readonly<Record<string, unknown>>>(query);
      return rows.map((row) => Object.values(row)[0]);
    },
    exclusively: (work) => alone(db, (tx) => work({ tx, exec: (text) => exec(tx, text, address) })),
    verify: async () => {},
    close: () => db.destroy(),
  };
}

async function createPool({ url, address }: PostgresTarget, log: Logger): Promise<Pool> {
  const { Pool, types } = await import('pg');
  // Numbers of rows arrive as text, for they might pass 2^53. Ours do not.
  const getTypeParser: typeof types.getTypeParser = (oid: number, format?: 'text' | 'binary') =>
    oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format);
  const pool = new Pool({ ...POOL, connectionString: url, types: { getTypeParser } });
  const lost = (error: Error) => log.warn('database connection lost', { store: address, problem: reason(error) });
  // Both need an ear, or the event ends the process: the pool speaks for idle connections, a client for one in use.
  pool.on('error', lost);
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** Any text must fit, and a database of another encoding would only fail at the first name it cannot spell. */
async function refuseEncoding(db: Kysely<Tables>, address: string): Promise<void> {
  const { rows } = await sql<{ encoding: string }>`select current_setting('server_encoding') as encoding`.execute(db);
  const encoding = rows[0]?.encoding;
  if (encoding !== 'UTF8') throw unavailable(address, `its encoding is ${encoding}, and reeve needs UTF8`);
}

/** The bytes of "reeve": any number will do, as long as every version of reeve takes the same. */
const MIGRATION_LOCK = '491327420005';

/** Read committed whatever the server's default, so that the rows are read as they are after the wait for the lock. */
function alone<T>(db: Kysely<Tables>, work: (tx: Transaction<Tables>) => Promise<T>): Promise<T> {
  return db
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (tx) => {
      await sql`set local lock_timeout = '60s'`.execute(tx);
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK})`.execute(tx);
      return work(tx);
    });
}

/** A query without parameters may hold many statements. */
async function exec(tx: Transaction<Tables>, text: string, store: string): Promise<void> {
  try {
    await sql.raw(text).execute(tx);
  } catch (error) {
    if (!isTaken(error)) throw error;
    throw new ReeveError('STORE_FOREIGN', { store, problem: reason(error) }, { cause: error });
  }
}

/** duplicate_table: several programs may share a database, but not a table. */
const isTaken = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === '42P07';

function rethrow(address: string, thrown: unknown, otherwise?: string): never {
  const problem = postgresProblem(thrown) ?? otherwise;
  if (problem === undefined) throw thrown;
  throw unavailable(address, problem, thrown);
}

const unavailable = (store: string, problem: string, cause?: unknown) =>
  new ReeveError('STORE_UNAVAILABLE', { store, problem }, { cause });
