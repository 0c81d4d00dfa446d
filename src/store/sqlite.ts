import { open, stat } from 'node:fs/promises';
import type { Database } from 'better-sqlite3';
import { CompiledQuery, type DatabaseConnection, Kysely, SqliteDialect, SqliteDriver } from 'kysely';
import { backOff, type Clock } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Attempt, guarded } from './guard.ts';
import type { OpenDatabase } from './open-database.ts';
import type { Tables } from './schema.ts';
import { sqliteProblem } from './sqlite-problem.ts';
import type { SqliteTarget } from './target.ts';

/** SQLite waits for a lock by blocking the whole process, so it may do so only briefly; then we wait beside the loop. */
const BLOCKING_WAIT_MS = 50;
const PATIENCE_MS = 5_000;

/** Opens the file, or makes it where there is none. A file that is not ours, or not whole, is refused and left as it is. */
export async function openSqlite(target: SqliteTarget, deps: SqliteDeps): Promise<OpenDatabase> {
  const { address, path } = target;
  const says = failure(address);
  const attempt = patient(deps.clock, says);
  const identity = await attempt(() => inspectFile(path, address));
  const { default: SqliteFile } = await import('better-sqlite3');
  const file = await attempt(async () => new SqliteFile(path, { timeout: BLOCKING_WAIT_MS }));
  try {
    await attempt(async () => refuseForeign(file, address));
    await attempt(async () => prepare(file, address, deps.log));
  } catch (error) {
    file.close();
    throw error;
  }
  const dialect = new SqliteDialect({ database: file });
  dialect.createDriver = () => new ImmediateDriver(file);
  const db = new Kysely<Tables>({ dialect: guarded(dialect, { connect: attempt, execute: attempt }) });
  return {
    address,
    db,
    exclusively: (work) =>
      db.transaction().execute((tx) => work({ tx, exec: (text) => attempt(async () => void file.exec(text)) })),
    column: ({ sql, parameters }) =>
      attempt(async () =>
        file
          .prepare(sql)
          .pluck()
          .all(...parameters),
      ),
    verify: () => attempt(() => refuseReplaced(path, identity, address)),
    close: async () => {
      await db.destroy();
      // Kysely closes only what it has used.
      file.close();
    },
  };
}

export interface SqliteDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

const MAGIC = 'SQLite format 3\0';

/** Looks at the file before SQLite may: SQLite plays the write-ahead log beside it into whatever has the name. */
async function inspectFile(path: string, address: string): Promise<Identity> {
  // And beside an empty database it deletes that log, which holds what was committed last. The log is asked for first:
  // a daemon that makes the database at this moment writes the file before it.
  if ((await sizeOf(`${path}-wal`)) > 0 && (await sizeOf(path)) === 0) {
    const problem = `the file is missing or empty, yet ${path}-wal holds part of it: restore the file, or move that away`;
    throw unavailable(address, problem);
  }
  // Opening to append makes a missing file, for its owner only, and cuts nothing off.
  await using file = await open(path, 'a+', 0o600);
  const { size, ino, dev } = await file.stat();
  const { buffer } = await file.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, 0);
  if (size > 0 && buffer.toString('latin1') !== MAGIC) throw unavailable(address, 'the file is not an SQLite database');
  return { ino, dev };
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

interface Identity {
  readonly ino: number;
  readonly dev: number;
}

const TABLE_NAMES = `select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'`;

/** Must come before anything that writes, even a change of the journal mode. */
function refuseForeign(file: Database, store: string): void {
  const tables = file.prepare<[], string>(TABLE_NAMES).pluck().all();
  if (tables.length === 0 || tables.includes('reeve_migrations')) return;
  const problem = `it has the tables ${tables.slice(0, 5).join(', ')}${tables.length > 5 ? ' …' : ''}`;
  throw new ReeveError('STORE_FOREIGN', { store, problem });
}

/**
 * FULL, not NORMAL: with NORMAL a power cut takes back every commit since the last checkpoint, on a quiet machine hours
 * of an archive that is there to outlive Redis. The price is one fsync for each transaction.
 */
function prepare(file: Database, store: string, log: Logger): void {
  const mode = file.pragma('journal_mode = wal', { simple: true });
  if (mode !== 'wal') log.warn('database file system has no write-ahead log', { store, mode });
  file.pragma('synchronous = full');
  file.pragma('foreign_keys = on');
}

/** The open file stays writable after it was deleted or replaced: rows would go where nobody will find them. */
async function refuseReplaced(path: string, identity: Identity, address: string): Promise<void> {
  const { ino, dev } = await stat(path);
  if (ino === identity.ino && dev === identity.dev) return;
  throw unavailable(address, 'the file was replaced by another while it was open; restart the daemon');
}

/** Takes the write lock at the start. A transaction that reads first and writes later could not wait for it any more. */
class ImmediateDriver extends SqliteDriver {
  readonly #file: Database;

  constructor(file: Database) {
    super({ database: file });
    this.#file = file;
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** After some failures, a full disk among them, SQLite has rolled back by itself. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#file.inTransaction) await super.rollbackTransaction(connection);
  }
}

/** A statement that found the file locked has done nothing, so it may run again. */
function patient(clock: Clock, says: (thrown: unknown) => unknown): Attempt {
  return async (run) => {
    const until = clock.now() + PATIENCE_MS;
    for (let again = 0; ; again++) {
      try {
        return await run();
      } catch (error) {
        if (!isBusy(error) || clock.now() >= until) throw says(error);
      }
      await clock.sleep(backOff(again, 5, 100));
    }
  };
}

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');

const failure = (address: string) => (thrown: unknown) => {
  const problem = sqliteProblem(thrown);
  return problem === undefined ? thrown : unavailable(address, problem, thrown);
};

const unavailable = (store: string, problem: string, cause?: unknown) =>
  new ReeveError('STORE_UNAVAILABLE', { store, problem }, { cause });
