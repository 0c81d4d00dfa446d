import { checksums } from './checksums.ts';
import type { PrdRow } from './prd-db.ts';

/**
 * Rows as they were read last, so that an edit of one row in ten thousand costs the reading of one. A row is the same
 * if everything that it was made of is.
 */
export class RowCache {
  #before = new Map<string, PrdRow>();
  #now = new Map<string, PrdRow>();

  /** Begins a reading: what the last one did not come across is dropped. */
  turn(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }

  row(madeOf: unknown, make: () => Omit<PrdRow, 'sums'>): PrdRow {
    const key = JSON.stringify(madeOf);
    const row = this.#before.get(key) ?? withSums(make());
    this.#now.set(key, row);
    return row;
  }
}

const withSums = (row: Omit<PrdRow, 'sums'>): PrdRow => ({ ...row, sums: checksums(row) });
