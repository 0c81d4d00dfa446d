import type { Clock } from '../clock.ts';
import type { Store } from '../store/database.ts';
import { type Spread, spreadOf } from './spread.ts';

export interface AnalyticsOptions {
  readonly store: Store;
  readonly clock: Clock;
}

/** One day of the burn-up: what there is to do, and what of it is done, at its end. */
export interface BurnupDay {
  readonly day: string;
  readonly created: number;
  readonly completed: number;
  /** Called off or refused. */
  readonly dropped: number;
  readonly scope: number;
  readonly done: number;
}

export interface Summary {
  readonly from: string;
  readonly to: string;
  readonly events: Readonly<Record<string, number>>;
  /** From the task's making to its end. */
  readonly lead_time: Spread;
  /** From the claim to its end. */
  readonly work_time: Spread;
  /** From being asked to the answer. */
  readonly approval_time: Spread;
}

const DAY_MS = 86_400_000;

/** What the pipeline counted, read back. */
export class Analytics {
  readonly #options: AnalyticsOptions;

  constructor(options: AnalyticsOptions) {
    this.#options = options;
  }

  /** The last so many days (UTC), today included; days on which nothing happened are there, too. */
  async burnup(days: number): Promise<BurnupDay[]> {
    const range = this.#lastDays(days);
    const created = await this.#byDay('created_at');
    const completed = await this.#byDay('ended_at', ['completed']);
    const dropped = await this.#byDay('ended_at', ['cancelled', 'rejected']);
    const from = range[0] as string;
    let scope = before(created, from) - before(dropped, from);
    let done = before(completed, from);
    return range.map((day) => {
      const one = {
        created: created.get(day) ?? 0,
        completed: completed.get(day) ?? 0,
        dropped: dropped.get(day) ?? 0,
      };
      scope += one.created - one.dropped;
      done += one.completed;
      return { day, ...one, scope, done };
    });
  }

  async summary(days: number): Promise<Summary> {
    const { db } = this.#options.store;
    const range = this.#lastDays(days);
    const [from, to] = [range[0] as string, range.at(-1) as string];
    const counts = await db
      .selectFrom('stat_days')
      .select(({ fn }) => ['event', fn.sum<number>('count').as('count')])
      .where('day', '>=', from)
      .groupBy('event')
      .orderBy('event')
      .execute();
    const tasks = await db
      .selectFrom('stat_tasks')
      .select(['created_at', 'started_at', 'ended_at'])
      .where('ended_at', '>=', from)
      .where('outcome', '=', 'completed')
      .execute();
    const answers = await db
      .selectFrom('stat_approvals')
      .select(['asked_at', 'answered_at'])
      .where('answered_at', '>=', from)
      .execute();
    return {
      from,
      to,
      events: Object.fromEntries(counts.map(({ event, count }) => [event, Number(count)])),
      lead_time: spreadOf(tasks.flatMap(({ created_at, ended_at }) => secondsBetween(created_at, ended_at))),
      work_time: spreadOf(tasks.flatMap(({ started_at, ended_at }) => secondsBetween(started_at, ended_at))),
      approval_time: spreadOf(answers.flatMap(({ asked_at, answered_at }) => secondsBetween(asked_at, answered_at))),
    };
  }

  async #byDay(column: 'created_at' | 'ended_at', outcomes?: readonly ('completed' | 'cancelled' | 'rejected')[]) {
    let query = this.#options.store.db
      .selectFrom('stat_tasks')
      .select((eb) => [
        eb.fn<string>('substr', [column, eb.val(1), eb.val(10)]).as('day'),
        eb.fn.countAll<number>().as('count'),
      ])
      .where(column, 'is not', null)
      .groupBy('day');
    if (outcomes) query = query.where('outcome', 'in', outcomes);
    return new Map((await query.execute()).map(({ day, count }) => [day, Number(count)]));
  }

  #lastDays(count: number): string[] {
    const now = this.#options.clock.now();
    return Array.from({ length: count }, (_, at) =>
      new Date(now - (count - 1 - at) * DAY_MS).toISOString().slice(0, 10),
    );
  }
}

const before = (counts: ReadonlyMap<string, number>, day: string): number =>
  [...counts].reduce((sum, [one, count]) => (one < day ? sum + count : sum), 0);

/** Times have microseconds, of which Date.parse leaves the last three out. */
function secondsBetween(from: string | null, to: string | null): number[] {
  if (from === null || to === null) return [];
  return [Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000)];
}
