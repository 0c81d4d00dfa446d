import type { Compilable, Kysely } from 'kysely';
import { type Clock, isoTime, withDeadline } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Service, service } from '../service.ts';
import { migrate, readMigrations } from './migrate.ts';
import type { OpenDatabase } from './open-database.ts';
import { openPostgres } from './postgres.ts';
import type { Tables } from './schema.ts';
import { openSqlite } from './sqlite.ts';
import { type StoreTarget, storeTarget } from './target.ts';

export interface StoreOptions {
  /** `postgres://…`, `sqlite:FILE`, `file:FILE` or a plain path. Default: reeve.db in the data directory. */
  readonly url?: string | undefined;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: the migrations beside this module. */
  readonly migrations?: URL | undefined;
}

/** The durable database. start() opens and migrates it; stop() closes it, after those who use it have stopped. */
export interface Store extends Service, AsyncDisposable {
  readonly dialect: StoreTarget['dialect'];
  /** Throws STORE_UNAVAILABLE unless the store is open: ask for it when it is needed, do not keep it. */
  readonly db: Kysely<Tables>;
  /** The only column of a query, a value for each row: for those who read so much that an object for each counts. */
  column<T>(query: Compilable<Readonly<Record<string, T>>>): Promise<readonly T[]>;
  /** Which database this is, for people: no password in it. */
  describe(): string;
  /** Resolves when a row could be committed, and says how long that took; else STORE_UNAVAILABLE says what is wrong. */
  check(): Promise<StoreHealth>;
}

export interface StoreHealth {
  readonly latencyMs: number;
}

/** Longer than a dialect itself waits, for it knows better what it waited for. */
const CHECK_MS = 7_000;

export function createStore({ url, dataDir, clock, log, migrations }: StoreOptions): Store {
  const target = storeTarget(url, dataDir);
  const { dialect, address } = target;
  const unavailable = (problem: string) => new ReeveError('STORE_UNAVAILABLE', { store: address, problem });
  let open: OpenDatabase | undefined;
  const opened = () => {
    if (!open) throw unavailable('it is not open');
    return open;
  };

  const life = service('store', async () => {
    const database = await (target.dialect === 'sqlite'
      ? openSqlite(target, { clock, log })
      : openPostgres(target, { log }));
    try {
      for (const migration of await migrate(database, await readMigrations(dialect, migrations), clock)) {
        log.info('migration applied', { migration, store: address });
      }
    } catch (error) {
      await database.close();
      throw error;
    }
    open = database;
    log.debug('store opened', { store: address });
    return () => {
      open = undefined;
      return database.close();
    };
  });

  return {
    ...life,
    dialect,
    get db() {
      return opened().db;
    },
    column: async <T>(query: Compilable<Readonly<Record<string, T>>>) =>
      (await opened().column(query.compile())) as readonly T[],
    describe: () => address,
    check: async () => {
      const since = clock.now();
      const late = () => unavailable(`it did not answer within ${CHECK_MS / 1000} s`);
      await withDeadline(clock, CHECK_MS, probe(opened(), clock), late);
      return { latencyMs: clock.now() - since };
    },
    [Symbol.asyncDispose]: () => life.stop(),
  };
}

/** A store that is already open, for commands and tests: `await using store = await openStore(…)` stops it at the end. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const store = createStore(options);
  await store.start();
  return store;
}

async function probe(database: OpenDatabase, clock: Clock): Promise<void> {
  await database.verify();
  const at = isoTime(clock);
  await database.db
    .insertInto('reeve_probe')
    .values({ id: 1, at })
    .onConflict((taken) => taken.column('id').doUpdateSet({ at }))
    .execute();
}
