import { randomUUID } from 'node:crypto';
import { type Clock, isoTime } from '../clock.ts';
import type { Store } from '../store/database.ts';
import type { JournalRow } from '../store/schema.ts';

export type { JournalRow } from '../store/schema.ts';

export interface JournalOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** How many may wait; what comes on top is refused. */
  readonly most: () => number;
}

export interface Wish {
  readonly operation: string;
  /** Who asked, as JSON. */
  readonly caller: string;
  readonly input: unknown;
  /** Whether it may have been done already, and only the answer was lost. */
  readonly isUncertain: boolean;
}

/** A wish as people see it. */
export interface Noted {
  readonly journal_id: string;
  readonly operation: string;
  readonly state: JournalRow['state'];
  readonly created_at: string;
  readonly ended_at?: string;
  readonly outcome?: string;
}

/** What was asked for while Redis was away. */
export class Journal {
  readonly #options: JournalOptions;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Notes a wish and returns its id; undefined if too many wait already. */
  async note({ operation, caller, input, isUncertain }: Wish): Promise<string | undefined> {
    const { store, clock, most } = this.#options;
    if ((await this.counts()).waiting >= most()) return undefined;
    const id = `jrn_${randomUUID()}`;
    await store.db
      .insertInto('journal')
      .values({
        id,
        operation,
        caller,
        input: JSON.stringify(input),
        state: 'waiting',
        attempts: isUncertain ? 1 : 0,
        created_at: isoTime(clock),
      })
      .execute();
    return id;
  }

  /** The oldest that waits. */
  next(): Promise<JournalRow | undefined> {
    return this.#options.store.db
      .selectFrom('journal')
      .selectAll()
      .where('state', '=', 'waiting')
      .orderBy('seq')
      .limit(1)
      .executeTakeFirst();
  }

  /** Said before it is tried: whoever comes after a crash knows that it may have been done. */
  async trying({ id, attempts }: JournalRow): Promise<void> {
    await this.#options.store.db
      .updateTable('journal')
      .set({ attempts: attempts + 1 })
      .where('id', '=', id)
      .execute();
  }

  /** `parked`: it was refused, and a person may want to look at it. */
  async end({ id }: JournalRow, state: 'done' | 'parked', outcome: string): Promise<void> {
    const { store, clock } = this.#options;
    await store.db
      .updateTable('journal')
      .set({ state, outcome: outcome.slice(0, LONGEST), ended_at: isoTime(clock) })
      .where('id', '=', id)
      .execute();
  }

  /** The newest first. */
  async list(limit: number, state?: JournalRow['state']): Promise<Noted[]> {
    let query = this.#options.store.db.selectFrom('journal').selectAll();
    if (state) query = query.where('state', '=', state);
    const rows = await query.orderBy('seq', 'desc').limit(limit).execute();
    return rows.map(({ id, operation, state: now, created_at, ended_at, outcome }) => ({
      journal_id: id,
      operation,
      state: now,
      created_at,
      ...(ended_at && { ended_at }),
      ...(outcome && { outcome }),
    }));
  }

  async counts(): Promise<{ readonly waiting: number; readonly parked: number }> {
    const rows = await this.#options.store.db
      .selectFrom('journal')
      .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
      .where('state', '!=', 'done')
      .groupBy('state')
      .execute();
    const of = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0);
    return { waiting: of('waiting'), parked: of('parked') };
  }
}
const LONGEST = 2_000;
