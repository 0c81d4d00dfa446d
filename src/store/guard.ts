import type { DatabaseConnection, Dialect, Driver } from 'kysely';

/** Runs something against the database. It may run it again, and it says what a failure means. */
export type Attempt = <T>(run: () => Promise<T>) => Promise<T>;

export interface Guards {
  readonly connect: Attempt;
  readonly execute: Attempt;
}

/** The same dialect, with every connection and every statement made under a guard, whichever query builder it came from. */
export function guarded(dialect: Dialect, guards: Guards): Dialect {
  return {
    createDriver: () => guardDriver(dialect.createDriver(), guards),
    createAdapter: () => dialect.createAdapter(),
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => dialect.createQueryCompiler(),
  };
}

/** Methods are replaced on the objects, as Kysely's own query log does: its drivers know their connections by identity. */
function guardDriver(driver: Driver, { connect, execute }: Guards): Driver {
  const guardedAlready = new WeakSet<DatabaseConnection>();
  const acquire = driver.acquireConnection.bind(driver);
  driver.acquireConnection = async (options) => {
    const connection = await connect(() => acquire(options));
    if (!guardedAlready.has(connection)) {
      guardedAlready.add(connection);
      const run = connection.executeQuery.bind(connection);
      connection.executeQuery = (query, queryOptions) => execute(() => run(query, queryOptions));
    }
    return connection;
  };
  return driver;
}
