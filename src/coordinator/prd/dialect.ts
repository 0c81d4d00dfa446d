import type { Outcome } from '../tasks/task-sink.ts';
import type { Correction, PrdFormat, PrdRow, PrdSnapshot, RefusedRow } from './prd-db.ts';
import type { RowCache } from './row-cache.ts';

/** What differs between the formats: their SQL and their rows. Made anew for each transaction, and called only inside it. */
export interface Dialect {
  readonly format: PrdFormat;
  readonly priorityOrder: PrdSnapshot['priorityOrder'];
  rows(cache: RowCache): { readonly rows: PrdRow[]; readonly refused: RefusedRow[] };
  /** The status of a task as the file spells it; undefined if it has no such row. */
  wordOf(taskId: string): string | undefined;
  setStatus(change: Correction): void;
  /** Adds a row to the format's own log. False: it has none that would take this. */
  log(outcome: Outcome): boolean;
}
