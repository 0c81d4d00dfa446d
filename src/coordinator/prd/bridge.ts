import { type Clock, isoTime, jittered } from '../../clock.ts';
import { asReeveError, ReeveError, reason } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { every, group, type Service, service } from '../../service.ts';
import type { TaskId } from '../tasks/task.ts';
import type { TaskSink } from '../tasks/task-sink.ts';
import { type Merge, merge } from './merge.ts';
import { openPrdDb } from './open-prd-db.ts';
import type { PrdDb, PrdSnapshot, Recorded } from './prd-db.ts';
import { Unsaved } from './unsaved.ts';

export interface BridgeOptions {
  readonly path: string;
  readonly sink: TaskSink;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Carries people's edits of the task file into the queue, and what becomes of the tasks back into the file. */
export interface PrdBridge extends Service {
  /** Reads the file if it may have changed, and merges. */
  pullOnce(): Promise<Pulled>;
  /** Writes waiting outcomes into the file. */
  pushOnce(): Promise<Pushed>;
  /** How the file is. Throws what is wrong with it, for `reeve status` to show. */
  check(): Promise<BridgeFacts>;
}

export interface Pulled {
  readonly admitted: number;
  readonly amended: number;
  readonly cancelled: number;
  readonly corrected: number;
}

export interface Pushed {
  readonly logged: number;
  readonly written: number;
}

/** A type, not an interface: it goes where any record of facts goes. */
export type BridgeFacts = {
  readonly format: string;
  readonly tasks: number;
  readonly quarantined: number;
  readonly refused: number;
};

/** With its jitter and the time of a reading, an edit is seen well within two seconds. */
const PERIOD_MS = 1_000;
/** Read anew at least this often, whatever the signs say. */
const REREAD_MS = 60_000;
const BATCH = 200;
const NOTHING: Pulled = { admitted: 0, amended: 0, cancelled: 0, corrected: 0 };

export function createPrdBridge(options: BridgeOptions): PrdBridge {
  const bridge = new Bridge(options);
  const { clock, log } = options;
  const loop = every('prd bridge loop', {
    clock,
    pauseMs: () => jittered(PERIOD_MS),
    tick: () => bridge.turnOnce(),
    onError: (error) => log.error('the prd bridge failed', { problem: reason(error) }),
  });
  // Ready means that the tasks are there, if the file is.
  const first = service('prd first turn', async () => {
    await bridge.turnOnce();
    return undefined;
  });
  const life = group('prd bridge', [first, loop]);
  return {
    ...life,
    // Also what pullOnce() or pushOnce() opened without a start.
    stop: () => life.stop().finally(() => bridge.close()),
    pullOnce: () => bridge.pullOnce(),
    pushOnce: () => bridge.pushOnce(),
    check: () => bridge.check(),
  };
}

/**
 * Outcomes go first and only over a status that nobody has touched, then edits are read: so neither side can overwrite
 * what the other has not seen. Redis is told before the file remembers; a crash in between repeats calls that may be
 * repeated. The file may be away for any time: outcomes wait in Redis, edits wait in the file.
 */
class Bridge {
  readonly #options: BridgeOptions;
  #db: PrdDb | undefined;
  #trouble: ReeveError | undefined;
  #facts: BridgeFacts | undefined;
  /** The tasks of the file when it was last read. */
  #known: ReadonlySet<string> = new Set();
  #mustReadAt = 0;
  /** Null: nothing yet. */
  #toldOrder: PrdSnapshot['priorityOrder'] | null = null;
  #unsaved = new Unsaved();

  constructor(options: BridgeOptions) {
    this.#options = options;
  }

  async turnOnce(): Promise<void> {
    // A file that takes no writes can still be read, so the second step does not depend on the first.
    const troubles = [await troubleOf(this.pushOnce()), await troubleOf(this.pullOnce())];
    this.#tell(troubles.find((trouble) => trouble !== undefined));
  }

  async pushOnce(): Promise<Pushed> {
    const { sink } = this.#options;
    const total = { logged: 0, written: 0 };
    for (;;) {
      const outcomes = await sink.outcomes(BATCH);
      if (outcomes.length === 0) return total;
      // First what is older: it must not go over what is recorded now.
      await this.#save();
      const recorded = await this.#using((db) => db.record(outcomes));
      // Recorded in a file that was replaced meanwhile is recorded nowhere.
      if (!(await this.#db?.isCurrent())) continue;
      await sink.settle(outcomes.map(({ id }) => id));
      this.#report(recorded);
      total.logged += recorded.logged;
      total.written += recorded.written;
    }
  }

  async pullOnce(): Promise<Pulled> {
    const snapshot = await this.#readIfChanged();
    if (!snapshot) {
      await this.#save();
      return NOTHING;
    }
    const { sink, clock, log } = this.#options;
    const ids = snapshot.rows.map(({ task }) => task.task_id);
    const memories = new Map([...snapshot.memories, ...this.#unsaved.rows]);
    const standings = await sink.standings(ids);
    const merged = merge({ rows: snapshot.rows, memories, standings, known: this.#known, at: isoTime(clock) });
    await this.#tellSink(merged, snapshot);
    this.#learn(snapshot, ids);
    this.#unsaved.add(merged);
    await this.#save();
    const pulled = {
      admitted: merged.admissions.length,
      amended: merged.amendments.length,
      cancelled: merged.cancelled.length,
      corrected: merged.corrections.length,
    };
    if (Object.values(pulled).some((count) => count > 0)) log.info('task file merged', pulled);
    return pulled;
  }

  async check(): Promise<BridgeFacts> {
    if (this.#trouble) throw this.#trouble;
    if (!this.#facts) throw new ReeveError('PRD_UNREADABLE', { path: this.#options.path, problem: 'not read yet' });
    return this.#facts;
  }

  close(): void {
    this.#db?.close();
    this.#db = undefined;
    this.#mustReadAt = 0;
  }

  /** Does something with the file of this name, opened anew if it is another than before. */
  async #using<T>(work: (db: PrdDb) => Promise<T>): Promise<T> {
    const { path, clock } = this.#options;
    if (this.#db && !(await this.#db.isCurrent())) {
      this.close();
      this.#unsaved = new Unsaved();
    }
    this.#db ??= await openPrdDb(path, clock);
    try {
      return await work(this.#db);
    } catch (error) {
      // Whatever is wrong with it, a file opened anew shows its present state.
      if (error instanceof ReeveError && ['PRD_UNREADABLE', 'PRD_FOREIGN'].includes(error.code)) this.close();
      throw error;
    }
  }

  async #readIfChanged(): Promise<PrdSnapshot | undefined> {
    const { sink, clock } = this.#options;
    const hasLost = (await sink.size()) < this.#known.size;
    return this.#using(async (db) => {
      const isDue = hasLost || clock.now() >= this.#mustReadAt;
      if (!isDue && !(await db.hasChanged())) return undefined;
      this.#mustReadAt = 0;
      const snapshot = await db.readAll();
      this.#refuseEmptied(snapshot);
      return snapshot;
    });
  }

  /** All gone at once is a mishap, not an order; some gone is a person's word. */
  #refuseEmptied({ rows, memories }: PrdSnapshot): void {
    const before = this.#known.size > 0 ? this.#known : new Set(memories.keys());
    if (before.size === 0 || rows.some(({ task }) => before.has(task.task_id))) return;
    throw new ReeveError('PRD_EMPTIED', { path: this.#options.path, known: before.size });
  }

  async #tellSink({ admissions, amendments, cancelled }: Merge, { priorityOrder }: PrdSnapshot): Promise<void> {
    const { sink } = this.#options;
    // Once more where only the format has changed.
    if (admissions.length > 0 || priorityOrder !== this.#toldOrder) await sink.admit(admissions, { priorityOrder });
    this.#toldOrder = priorityOrder;
    if (amendments.length > 0) await sink.amend(amendments);
    if (cancelled.length > 0) await sink.cancel(cancelled, 'its row was deleted from the task file');
  }

  #learn({ rows, refused }: PrdSnapshot, ids: readonly TaskId[]): void {
    const { clock, log } = this.#options;
    this.#known = new Set(ids);
    this.#mustReadAt = clock.now() + REREAD_MS;
    this.#facts = {
      format: this.#db?.format ?? '',
      tasks: rows.length,
      quarantined: rows.filter(({ problems }) => problems.length > 0).length,
      refused: refused.length,
    };
    for (const { row, problem } of refused) log.warn('a row cannot be a task', { row, problem });
  }

  async #save(): Promise<void> {
    if (this.#unsaved.isEmpty) return;
    this.#report(await this.#using((db) => db.remember(this.#unsaved)));
    this.#unsaved = new Unsaved();
  }

  #report({ refused, contested }: Recorded): void {
    for (const { row, problem } of refused) this.#options.log.warn('the task file refused a row', { row, problem });
    if (contested.length > 0) this.#mustReadAt = 0;
  }

  /** Said once when it begins and once when it ends, not on every turn. */
  #tell(trouble: ReeveError | undefined): void {
    const { log, path } = this.#options;
    if (trouble && trouble.code !== this.#trouble?.code) {
      const { code, message, cause } = trouble;
      log.warn('merging the task file failed, trying again', {
        path,
        code,
        problem: message,
        cause: cause && reason(cause),
      });
    }
    if (!trouble && this.#trouble) log.info('the task file is merged again', { path });
    this.#trouble = trouble;
  }
}

const troubleOf = (step: Promise<unknown>): Promise<ReeveError | undefined> => step.then(() => undefined, asReeveError);
