import type { CompiledQuery, Kysely, Transaction } from 'kysely';
import type { Tables } from './schema.ts';

/** A database that is open: what SQLite and PostgreSQL each bring. Its failures are STORE_UNAVAILABLE where it is to blame. */
export interface OpenDatabase {
  readonly address: string;
  readonly db: Kysely<Tables>;
  /** The only column of a query: for those who read so much that an object for each row counts. */
  column(query: CompiledQuery): Promise<readonly unknown[]>;
  /** Runs `work` in one transaction, while no other process does the same on this database. */
  exclusively<T>(work: (change: SchemaChange) => Promise<T>): Promise<T>;
  /** Notices what no statement would. */
  verify(): Promise<void>;
  close(): Promise<void>;
}

export interface SchemaChange {
  readonly tx: Transaction<Tables>;
  /** Runs a text of many statements inside the transaction. */
  exec(text: string): Promise<void>;
}
