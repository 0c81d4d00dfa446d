import type { Database } from 'better-sqlite3';
import { z } from 'zod';
import { PHASES } from '../tasks/station.ts';
import type { Outcome } from '../tasks/task-sink.ts';
import { columnsOf } from './dialect.ts';
import type { RowMemory } from './prd-db.ts';

/**
 * What reeve keeps in a task file for itself, beside people's tables and never in them: what was last agreed on about
 * each row, which outcomes have been written down, and log rows that the format has no place for.
 */
const CREATE = `
create table if not exists reeve_rows (
  task_id text not null primary key,
  word text not null,
  agent text,
  phase text not null,
  is_held integer not null,
  fields text not null,
  problems text not null
) without rowid;
create table if not exists reeve_logged (
  ms integer not null,
  seq integer not null,
  primary key (ms, seq)
) without rowid;
create table if not exists reeve_log (
  id integer primary key,
  event_type text not null,
  task_id text,
  agent_id text,
  payload text,
  created_at text not null
);`;

const memoryRow = z.object({
  task_id: z.string(),
  word: z.string(),
  agent: z.string().nullable(),
  phase: z.enum(PHASES),
  is_held: z.number(),
  fields: z.string(),
  problems: z.string(),
});

/** Called only inside a transaction. */
export class OwnTables {
  readonly #file: Database;

  constructor(file: Database) {
    this.#file = file;
  }

  /** Before the first write; reading does without them. */
  create(): void {
    this.#file.exec(CREATE);
  }

  memories(): Map<string, RowMemory> {
    if (columnsOf(this.#file, 'reeve_rows').size === 0) return new Map();
    const rows = this.#file.prepare('select * from reeve_rows').all();
    return new Map(rows.map(memoryOf));
  }

  memoryOf(taskId: string): RowMemory | undefined {
    const row = this.#file.prepare('select * from reeve_rows where task_id = ?').get(taskId);
    return row === undefined ? undefined : memoryOf(row)[1];
  }

  remember(rows: Iterable<readonly [string, RowMemory]>): void {
    const insert = this.#file.prepare('insert or replace into reeve_rows values (?, ?, ?, ?, ?, ?, ?)');
    for (const [id, { word, agent, phase, isHeld, fields, problems }] of rows) {
      insert.run(id, word, agent ?? null, phase, isHeld ? 1 : 0, fields, problems);
    }
  }

  forget(taskIds: readonly string[]): void {
    const remove = this.#file.prepare('delete from reeve_rows where task_id = ?');
    for (const id of taskIds) remove.run(id);
  }

  /** Marks an outcome as written down. False: it was already, before a crash or by another daemon. */
  isNew(outcome: Outcome): boolean {
    const [ms, seq] = outcome.id.split('-').map(Number);
    return this.#file.prepare('insert or ignore into reeve_logged values (?, ?)').run(ms, seq ?? 0).changes === 1;
  }

  /** Forgets marks so old that Redis cannot offer their outcomes again, not even restored from a backup. */
  prune(keepMs: number): void {
    this.#file.prepare('delete from reeve_logged where ms < (select max(ms) from reeve_logged) - ?').run(keepMs);
  }

  log({ event, task_id, agent_id, at, payload }: Outcome): void {
    const insert = 'insert into reeve_log (event_type, task_id, agent_id, payload, created_at) values (?, ?, ?, ?, ?)';
    this.#file.prepare(insert).run(event, task_id, agent_id ?? null, JSON.stringify(payload), at);
  }
}

function memoryOf(row: unknown): [string, RowMemory] {
  const { task_id, agent, is_held, ...rest } = memoryRow.parse(row);
  return [task_id, { ...rest, agent: agent ?? undefined, isHeld: is_held !== 0 }];
}
