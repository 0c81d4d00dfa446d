import type { Database, Statement } from 'better-sqlite3';
import type { Cell, Cells } from './cells.ts';

/**
 * The tables of somebody else's database, within one transaction: what columns they have is asked once, each statement
 * is prepared once. People may change the schema at any time, so neither is kept for the next.
 */
export class Tables {
  readonly #file: Database;
  readonly #columns = new Map<string, ReadonlyMap<string, string>>();
  readonly #statements = new Map<string, Statement<Cell[], Cells>>();

  constructor(file: Database) {
    this.#file = file;
  }

  /** The columns of a table with their declared types in lower case; empty if there is no such table. */
  columns(table: string): ReadonlyMap<string, string> {
    const known = this.#columns.get(table);
    if (known) return known;
    const info = this.#file.pragma(`table_info(${table})`) as { name: string; type: string }[];
    const columns = new Map(info.map(({ name, type }) => [name, type.toLowerCase()]));
    this.#columns.set(table, columns);
    return columns;
  }

  has(table: string): boolean {
    return this.columns(table).size > 0;
  }

  /** Statements that change the schema, ours alone. */
  define(statements: string): void {
    this.#file.exec(statements);
    this.#columns.clear();
  }

  get(sql: string, ...values: Cell[]): Cells | undefined {
    return this.#prepared(sql).get(...values);
  }

  all(sql: string, ...values: Cell[]): Cells[] {
    return this.#prepared(sql).all(...values);
  }

  /** How many rows it changed. */
  run(sql: string, ...values: Cell[]): number {
    return this.#prepared(sql).run(...values).changes;
  }

  /** Those of the wanted columns that are there, as rows by name. Others, however wide, are not read. */
  select(table: string, wanted: readonly string[], order = ''): Cells[] {
    const columns = wanted.filter((name) => this.columns(table).has(name));
    return columns.length === 0 ? [] : this.all(`select ${columns.join(', ')} from ${table} ${order}`);
  }

  /** Sets those of the columns that the table has; undefined leaves one as it is. */
  update(table: string, values: Cells, where: { readonly column: string; readonly is: string }): void {
    const columns = this.#given(table, values);
    if (columns.length === 0) return;
    const assignments = columns.map((name) => `${name} = ?`).join(', ');
    const sql = `update ${table} set ${assignments} where ${where.column} = ?`;
    this.run(sql, ...columns.map((name) => values[name]), where.is);
  }

  /** Inserts into those of the columns that the table has. */
  insert(table: string, values: Cells): void {
    const columns = this.#given(table, values);
    const sql = `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;
    this.run(sql, ...columns.map((name) => values[name]));
  }

  /** In a savepoint of its own: a failure takes back this alone. */
  alone<T>(work: () => T): T {
    return this.#file.transaction(work)();
  }

  #given(table: string, values: Cells): string[] {
    return Object.keys(values).filter((name) => values[name] !== undefined && this.columns(table).has(name));
  }

  #prepared(sql: string): Statement<Cell[], Cells> {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#file.prepare<Cell[], Cells>(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

export const unknownEdges = (columns: ReadonlyMap<string, unknown>): Error =>
  new Error(`the columns of its task_dependencies are not known: ${[...columns.keys()].join(', ')}`);
