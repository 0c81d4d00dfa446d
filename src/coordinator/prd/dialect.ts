import type { Database } from 'better-sqlite3';
import type { Outcome } from '../tasks/task-sink.ts';
import type { Cells } from './cells.ts';
import type { Correction, PrdFormat, PrdRow, PrdSnapshot, RefusedRow } from './prd-db.ts';

/**
 * What differs between the formats: their SQL and their rows. Made anew for each transaction, since people may change
 * the schema at any time; called only inside one.
 */
export interface Dialect {
  readonly format: PrdFormat;
  readonly priorityOrder: PrdSnapshot['priorityOrder'];
  rows(): { readonly rows: PrdRow[]; readonly refused: RefusedRow[] };
  /** The status of a task as the file spells it; undefined if it has no such row. */
  wordOf(taskId: string): string | undefined;
  setStatus(change: Correction): void;
  /** Adds a row to the format's own log. False: it has none that would take this. */
  log(outcome: Outcome): boolean;
}

/** The columns of a table with their declared types in lower case; empty if there is no such table. */
export function columnsOf(file: Database, table: string): ReadonlyMap<string, string> {
  const info = file.pragma(`table_info(${table})`) as { name: string; type: string }[];
  return new Map(info.map(({ name, type }) => [name, type.toLowerCase()]));
}

/** Those of the wanted columns that are there, as rows by name. Others, however wide, are not read. */
export function selectKnown(file: Database, table: string, wanted: readonly string[], order = ''): Cells[] {
  const has = columnsOf(file, table);
  const columns = wanted.filter((name) => has.has(name));
  if (columns.length === 0) return [];
  return file.prepare<[], Cells>(`select ${columns.join(', ')} from ${table} ${order}`).all();
}

/** Sets those of the columns that the table has. */
export function updateKnown(file: Database, table: string, values: Cells, where: { column: string; is: string }): void {
  const has = columnsOf(file, table);
  const columns = Object.keys(values).filter((name) => has.has(name) && values[name] !== undefined);
  if (columns.length === 0) return;
  const assignments = columns.map((name) => `${name} = ?`).join(', ');
  const given = columns.map((name) => values[name] ?? null);
  file.prepare(`update ${table} set ${assignments} where ${where.column} = ?`).run(...given, where.is);
}

/** Inserts into those of the columns that the table has. */
export function insertKnown(file: Database, table: string, values: Cells): void {
  const has = columnsOf(file, table);
  const columns = Object.keys(values).filter((name) => has.has(name) && values[name] !== undefined);
  const marks = columns.map(() => '?').join(', ');
  const given = columns.map((name) => values[name] ?? null);
  file.prepare(`insert into ${table} (${columns.join(', ')}) values (${marks})`).run(...given);
}
