import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { type Clock, isoTime } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import type { OpenDatabase, SchemaChange } from './open-database.ts';

/** Kysely's own Migrator keeps no checksums and takes no lock between processes on SQLite, hence this one. */
export interface Migration {
  /** The file's name without its ending: 0001-events. Migrations are applied in the order of their names. */
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

const MIGRATIONS = new URL('./migrations/', import.meta.url);
const FILE_NAME = /^(?<name>\d{4}-[a-z0-9-]+)(?<twin>\.postgres)?\.sql$/;

/** The migrations beside this module. `NAME.postgres.sql` stands in for `NAME.sql` on PostgreSQL, where there is one. */
export async function readMigrations(dialect: 'sqlite' | 'postgres', folder = MIGRATIONS): Promise<Migration[]> {
  const files = new Map<string, string>();
  for (const file of (await readdir(folder)).sort()) {
    const { name, twin } = FILE_NAME.exec(file)?.groups ?? {};
    // A twin sorts before its plain file ('.p' < '.s').
    if (name && (twin ? dialect === 'postgres' : !files.has(name))) files.set(name, file);
  }
  return Promise.all(
    [...files].map(async ([name, file]) => {
      // A checkout may turn line ends; that is not another text.
      const text = (await readFile(new URL(file, folder), 'utf8')).replaceAll('\r\n', '\n');
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') };
    }),
  );
}

/**
 * Applies what is missing and returns its names. Each migration commits together with the row that says so; the lock
 * is taken anew and the rows are read anew for each, so that of several daemons exactly one applies it.
 */
export async function migrate(to: OpenDatabase, migrations: readonly Migration[], clock: Clock): Promise<string[]> {
  const applied: string[] = [];
  for (;;) {
    const name = await to.exclusively((change) => applyNext(change, { store: to.address, migrations, clock }));
    if (name === undefined) return applied;
    applied.push(name);
  }
}

const CREATE_MIGRATIONS = `create table if not exists reeve_migrations (
  name text not null primary key,
  checksum text not null,
  applied_at text not null
)`;

interface Step {
  readonly store: string;
  readonly migrations: readonly Migration[];
  readonly clock: Clock;
}

async function applyNext(change: SchemaChange, { store, migrations, clock }: Step): Promise<string | undefined> {
  const { tx } = change;
  await sql.raw(CREATE_MIGRATIONS).execute(tx);
  const applied = await tx.selectFrom('reeve_migrations').select(['name', 'checksum']).execute();
  const next = nextOf(migrations, applied, store);
  if (!next) return undefined;
  try {
    await change.exec(next.text);
  } catch (error) {
    if (error instanceof ReeveError) throw error;
    throw new ReeveError(
      'STORE_MIGRATION_FAILED',
      { store, migration: next.name, problem: reason(error) },
      { cause: error },
    );
  }
  const { name, checksum } = next;
  await tx
    .insertInto('reeve_migrations')
    .values({ name, checksum, applied_at: isoTime(clock) })
    .execute();
  return name;
}

/** What was applied must be how the known list begins, name by name and text by text. */
function nextOf(
  known: readonly Migration[],
  applied: readonly Pick<Migration, 'name' | 'checksum'>[],
  store: string,
): Migration | undefined {
  const latest = known.at(-1)?.name ?? '0000';
  const inOrder = applied.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const newest = inOrder.at(-1)?.name ?? '0000';
  if (numberOf(newest) > numberOf(latest)) {
    throw new ReeveError('STORE_NEWER', { store, found: newest, known: latest });
  }
  for (const [i, { name, checksum }] of inOrder.entries()) {
    if (known[i]?.name !== name || known[i].checksum !== checksum) {
      throw new ReeveError('STORE_ALTERED', { store, migration: name });
    }
  }
  return known[inOrder.length];
}

const numberOf = (name: string): number => Number.parseInt(name, 10);
