import type { Phase } from '../tasks/station.ts';
import type { ContentField, Task } from '../tasks/task.ts';
import type { Outcome } from '../tasks/task-sink.ts';

/** Two unlike schemas go by the name of prd.db. They are told apart by their columns. */
export type PrdFormat = 'A' | 'B';

/**
 * An open task file. It belongs to people: reeve writes the status, agent and time of a task and rows of the log that
 * the format has, in the format's words; whatever else it must keep is in tables of its own, named reeve_*.
 *
 * Each method is one transaction. A file that others hold is waited for beside the event loop, then PRD_LOCKED.
 */
export interface PrdDb {
  readonly format: PrdFormat;
  readonly path: string;
  /** Whether another program committed since readAll(). Our own commits do not count. */
  hasChanged(): Promise<boolean>;
  /** Whether the file of that name is still the one that is open: it may have been replaced or deleted. */
  isCurrent(): Promise<boolean>;
  /** Every row, and what was remembered of each. */
  readAll(): Promise<PrdSnapshot>;
  /** Writes outcomes down: a log row for each that has none yet, and where the tasks stand now. */
  record(outcomes: readonly Outcome[]): Promise<Recorded>;
  /** Remembers what both sides now agree on, and sets right what they do not. */
  remember(memory: Memory): Promise<Recorded>;
  close(): void;
}

export interface PrdSnapshot {
  readonly rows: readonly PrdRow[];
  /** By id of the task. Empty for a file that reeve has not written to. */
  readonly memories: ReadonlyMap<string, RowMemory>;
  /** Which end of the priorities is urgent, where the format says so. */
  readonly priorityOrder?: 'asc' | 'desc' | undefined;
  /** What could not become a task at all: an id that cannot be one, a row without one. */
  readonly refused: readonly RefusedRow[];
}

/** One task of the file, in our words. */
export interface PrdRow {
  readonly task: Task;
  readonly phase: Phase;
  /** Whether its status means that a person put it aside; see the words of the formats. */
  readonly hold: 'none' | 'edit' | 'word';
  /** The status as the file spells it. */
  readonly word: string;
  readonly agent: string | undefined;
  /** What is wrong with the row, in words. The task is quarantined for it, never started on a guess. */
  readonly problems: readonly RowProblem[];
  /** A checksum of each field that could be read. */
  readonly sums: string;
}

export interface RowProblem {
  /** The field that could not be read; what the row says of it is a placeholder. */
  readonly field: ContentField | 'status' | 'task_id';
  readonly says: string;
}

export interface RefusedRow {
  readonly row: string;
  readonly problem: string;
}

/** What the file and Redis last agreed on about a row. What differs from it was edited by somebody else. */
export interface RowMemory {
  readonly word: string;
  readonly agent: string | undefined;
  readonly phase: Phase;
  readonly isHeld: boolean;
  readonly sums: string;
  /** Its problems, as one text. */
  readonly problems: string;
}

export interface Memory {
  readonly rows: ReadonlyMap<string, RowMemory>;
  readonly forgotten: readonly string[];
  /** Rows whose status is to become what Redis has. */
  readonly corrections: readonly Correction[];
}

/** A status to write, in our words. */
export interface Correction {
  readonly task_id: string;
  readonly phase: Phase;
  readonly agent?: string | undefined;
  /** RFC 3339. */
  readonly at: string;
}

export interface Recorded {
  /** Log rows written; those that were there already do not count. */
  readonly logged: number;
  readonly written: number;
  /** Rows that somebody edited meanwhile: left alone, for the next reading to merge. */
  readonly contested: readonly string[];
  /** Rows that the file would not take, and why: a constraint, a trigger. */
  readonly refused: readonly RefusedRow[];
}
