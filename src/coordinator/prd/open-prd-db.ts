import type { Database } from 'better-sqlite3';
import type { Clock } from '../../clock.ts';
import { ReeveError, reason } from '../../errors.ts';
import { phaseOf } from '../tasks/station.ts';
import type { Outcome } from '../tasks/task-sink.ts';
import { RAW } from '../tasks/work.ts';
import type { Dialect } from './dialect.ts';
import { formatA } from './format-a.ts';
import { formatB } from './format-b.ts';
import { writeStatus } from './mapping.ts';
import { OwnTables } from './own-tables.ts';
import type { Correction, PrdDb, PrdFormat, PrdRow, PrdSnapshot, Recorded } from './prd-db.ts';
import { RowCache } from './row-cache.ts';
import { codeOf, openSqliteFile } from './sqlite-file.ts';
import { Tables } from './tables.ts';

const DAY_MS = 86_400_000;
/** A backup of Redis older than this is not expected to come back. */
const REMEMBER_LOGGED_MS = 90 * DAY_MS;

/** Opens a task file of either format; PRD_FOREIGN says what was found instead. Nothing is written yet. */
export async function openPrdDb(path: string, clock: Clock): Promise<PrdDb> {
  const file = await openSqliteFile(path, clock);
  const cache = new RowCache();
  let seenVersion: number | undefined;
  const version = (database: Database) => database.pragma('data_version', { simple: true }) as number;
  const read = (database: Database): PrdSnapshot => {
    const tables = new Tables(database);
    const dialect = dialectOf(tables, path);
    const memories = new OwnTables(tables).memories();
    cache.turn();
    const { rows, refused } = dialect.rows(cache);
    const snapshot = { rows: eachOnce(rows), refused, memories, priorityOrder: dialect.priorityOrder };
    seenVersion = version(database);
    return snapshot;
  };
  try {
    const { format } = await file.transaction('read', (database) => dialectOf(new Tables(database), path));
    return {
      format,
      path,
      hasChanged: async () => (await file.transaction('read', version)) !== seenVersion,
      isCurrent: () => file.isCurrent(),
      readAll: () => file.transaction('read', read),
      record: (outcomes) =>
        file.transaction('write', (database) => record(new Scribe(new Tables(database), path), outcomes)),
      remember: ({ rows, forgotten, corrections }) =>
        file.transaction('write', (database) => {
          const scribe = new Scribe(new Tables(database), path);
          scribe.own.remember(rows);
          scribe.own.forget(forgotten);
          for (const correction of corrections) scribe.write(correction);
          return scribe.done();
        }),
      close: () => file.close(),
    };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Of rows with the same id the first is kept, under quarantine: which of them is meant is for people to say. */
function eachOnce(rows: readonly PrdRow[]): PrdRow[] {
  const byId = new Map<string, PrdRow>();
  for (const row of rows) {
    const { task_id } = row.task;
    const first = byId.get(task_id);
    const says = `more than one row has the id ${task_id}`;
    if (!first) byId.set(task_id, row);
    else if (first.problems.at(-1)?.says !== says) {
      byId.set(task_id, { ...first, problems: [...first.problems, { field: 'task_id', says }] });
    }
  }
  return [...byId.values()];
}

/** Which format the file has now, by the columns of its tasks. A file with both sets of columns names its ids: A. */
export function formatOf(tables: Tables): PrdFormat | undefined {
  const columns = tables.columns('tasks');
  if (!columns.has('title')) return undefined;
  if (columns.has('task_id')) return 'A';
  const hasLinks = tables.columns('task_dependencies').has('task_display_id');
  return columns.has('display_id') || (columns.has('id') && hasLinks) ? 'B' : undefined;
}

function dialectOf(tables: Tables, path: string): Dialect {
  const format = formatOf(tables);
  if (format) return format === 'A' ? formatA(tables) : formatB(tables);
  const columns = [...tables.columns('tasks').keys()];
  const problem = columns.length === 0 ? 'it has no table tasks' : `its tasks have the columns ${columns.join(', ')}`;
  throw new ReeveError('PRD_FOREIGN', { path, problem });
}

/** Each outcome is logged once, whatever was repeated; of several about one task, the last says where it stands. */
function record(scribe: Scribe, outcomes: readonly Outcome[]): Recorded {
  const last = new Map<string, Correction>();
  for (const outcome of outcomes) {
    if (!scribe.own.isNew(outcome)) continue;
    scribe.log(outcome);
    const { task_id, station, agent_id, at } = outcome;
    if (station) last.set(task_id, { task_id, phase: phaseOf(station), agent: nameOf(agent_id, task_id), at });
  }
  for (const correction of last.values()) scribe.write(correction);
  scribe.own.prune(REMEMBER_LOGGED_MS);
  return scribe.done();
}

/** Whom a person named in the file is trusted under another name; the file keeps the one that it has. */
const nameOf = (agent: string | undefined, task: string): string | undefined =>
  agent?.startsWith(RAW) && agent !== `${RAW}${task}` ? agent.slice(RAW.length) : agent;

/** Writes into one file within one transaction. A row that the file refuses does not keep the others from it. */
class Scribe {
  readonly own: OwnTables;
  readonly #tables: Tables;
  readonly #dialect: Dialect;
  readonly #contested: string[] = [];
  readonly #refused: { row: string; problem: string }[] = [];
  #logged = 0;
  #written = 0;

  constructor(tables: Tables, path: string) {
    this.#tables = tables;
    this.#dialect = dialectOf(tables, path);
    this.own = new OwnTables(tables);
    this.own.create();
  }

  log(outcome: Outcome): void {
    const isTaken = this.#attempt(outcome.task_id, () => this.#dialect.log(outcome));
    if (!isTaken) this.own.log(outcome);
    this.#logged++;
  }

  /** Only over what was last agreed on: a status that somebody edited meanwhile is for the next reading to merge. */
  write(change: Correction): void {
    const { task_id, phase, agent } = change;
    const memory = this.own.memoryOf(task_id);
    if (!memory || (memory.phase === phase && (agent === undefined || memory.agent === agent))) return;
    if (this.#dialect.wordOf(task_id) !== memory.word) {
      this.#contested.push(task_id);
      return;
    }
    const isWritten = this.#attempt(task_id, () => {
      this.#dialect.setStatus(change);
      return true;
    });
    if (!isWritten) return;
    const word = writeStatus(this.#dialect.format, phase);
    const kept = phase === 'open' ? undefined : (agent ?? memory.agent);
    this.own.remember([[task_id, { ...memory, word, phase, isHeld: false, agent: kept }]]);
    this.#written++;
  }

  done(): Recorded {
    return { logged: this.#logged, written: this.#written, contested: this.#contested, refused: this.#refused };
  }

  /** Inside a savepoint, so that a constraint or trigger takes back this row alone. The file itself failing is not that. */
  #attempt(row: string, write: () => boolean): boolean {
    try {
      return this.#tables.alone(write);
    } catch (error) {
      if (!/^SQLITE_(CONSTRAINT|ERROR|MISMATCH|TOOBIG)/.test(codeOf(error))) throw error;
      this.#refused.push({ row, problem: reason(error) });
      return false;
    }
  }
}
