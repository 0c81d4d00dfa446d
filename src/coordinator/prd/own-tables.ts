import { z } from 'zod';
import { PHASES } from '../tasks/station.ts';
import type { Outcome } from '../tasks/task-sink.ts';
import type { RowMemory } from './prd-db.ts';
import type { Tables } from './tables.ts';

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
  sums text not null,
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
  sums: z.string(),
  problems: z.string(),
});

/** Called only inside a transaction. */
export class OwnTables {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Before the first write; reading does without them. */
  create(): void {
    this.#tables.define(CREATE);
  }

  memories(): Map<string, RowMemory> {
    return new Map(this.#tables.has('reeve_rows') ? this.#tables.all('select * from reeve_rows').map(memoryOf) : []);
  }

  memoryOf(taskId: string): RowMemory | undefined {
    const row = this.#tables.get('select * from reeve_rows where task_id = ?', taskId);
    return row && memoryOf(row)[1];
  }

  remember(rows: Iterable<readonly [string, RowMemory]>): void {
    const insert = 'insert or replace into reeve_rows values (?, ?, ?, ?, ?, ?, ?)';
    for (const [id, { word, agent, phase, isHeld, sums, problems }] of rows) {
      this.#tables.run(insert, id, word, agent ?? null, phase, isHeld ? 1 : 0, sums, problems);
    }
  }

  forget(taskIds: readonly string[]): void {
    for (const id of taskIds) this.#tables.run('delete from reeve_rows where task_id = ?', id);
  }

  /** Marks an outcome as written down. False: it was already, before a crash or by another daemon. */
  isNew(outcome: Outcome): boolean {
    const [ms, seq] = outcome.id.split('-').map(Number);
    return this.#tables.run('insert or ignore into reeve_logged values (?, ?)', ms, seq ?? 0) === 1;
  }

  /** Forgets marks so old that Redis cannot offer their outcomes again, not even restored from a backup. */
  prune(keepMs: number): void {
    this.#tables.run('delete from reeve_logged where ms < (select max(ms) from reeve_logged) - ?', keepMs);
  }

  log({ event, task_id, agent_id, at, payload }: Outcome): void {
    const row = { event_type: event, task_id, agent_id, payload: JSON.stringify(payload), created_at: at };
    this.#tables.insert('reeve_log', row);
  }
}

function memoryOf(row: unknown): [string, RowMemory] {
  const { task_id, agent, is_held, ...rest } = memoryRow.parse(row);
  return [task_id, { ...rest, agent: agent ?? undefined, isHeld: is_held !== 0 }];
}
