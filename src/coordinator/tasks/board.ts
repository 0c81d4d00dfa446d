import type { Clock } from '../../clock.ts';
import type { ReeveEvent } from '../../events/catalogue.ts';
import type { EventLog } from '../../events/event-log.ts';
import type { Tail } from '../../events/tail.ts';
import { type Service, service } from '../../service.ts';
import type { Roster } from '../agents/roster.ts';
import { type Forecast, forecast } from './forecast.ts';
import type { Pauses } from './pauses.ts';
import type { Staffing, Unserved } from './staffing.ts';
import type { ProgressField, TaskViews } from './task-view.ts';

export interface BoardOptions {
  readonly views: TaskViews;
  readonly pauses: Pauses;
  readonly roster: Roster;
  readonly staffing: Staffing;
  readonly events: EventLog;
  readonly tail: Pick<Tail, 'listen'>;
  readonly clock: Clock;
}

export interface Board {
  readonly counts: Readonly<Record<ProgressField, number>>;
  /** Undefined: not enough history. */
  readonly forecast?: Forecast | undefined;
  readonly agents: readonly BoardAgent[];
  /** Newest first. */
  readonly errors: readonly string[];
  readonly pauses: readonly { readonly what: string; readonly reason: string; readonly until?: string | undefined }[];
  /** Ready, and nobody is there who can take them. */
  readonly unserved: readonly Unserved[];
}

export interface BoardAgent {
  readonly agent_id: string;
  readonly agent_type: string;
  readonly status: string;
  readonly tasks: readonly string[];
  readonly working_since?: string | undefined;
  readonly note?: string | undefined;
  readonly percent?: number | undefined;
}

const KEPT = 2_000;
const ERRORS = 5;
const UNSERVED = 20;

/** How the work as a whole gets on: what `reeve status` shows. */
export class TaskBoard {
  readonly #options: BoardOptions;
  readonly #completions: number[] = [];
  #remembered: Promise<void> | undefined;

  constructor(options: BoardOptions) {
    this.#options = options;
  }

  /** Keeps in mind when tasks are completed. */
  listening(): Service {
    return service('task board', async () => this.#options.tail.listen((event) => this.hear(event)));
  }

  hear({ event, at }: Pick<ReeveEvent, 'event' | 'at'>): void {
    if (event !== 'task_completed') return;
    this.#completions.push(Date.parse(at));
    if (this.#completions.length > KEPT) this.#completions.shift();
  }

  async look(): Promise<Board> {
    const { views, pauses: paused, roster, staffing, clock } = this.#options;
    this.#remembered ??= this.#remember().catch((error: unknown) => {
      this.#remembered = undefined;
      throw error;
    });
    await this.#remembered;
    const [counts, cards, errors, pauses, unserved] = await Promise.all([
      views.progress(),
      roster.list(),
      views.errors(ERRORS),
      paused.list(),
      staffing.unserved(),
    ]);
    const remaining = counts.pending + counts.blocked + counts.in_progress;
    return {
      counts,
      forecast: remaining > 0 ? forecast({ completions: this.#completions, now: clock.now() }, remaining) : undefined,
      agents: cards
        .filter(({ status }) => status !== 'gone')
        .map(({ agent_id, agent_type, status, tasks, working_since, note, percent }) => {
          return { agent_id, agent_type, status, tasks, working_since, note, percent };
        }),
      errors,
      pauses: pauses.map(({ what, pause: { reason = '', ends = 0 } }) => ({
        what,
        reason,
        until: ends > 0 ? new Date(ends * 1000).toISOString() : undefined,
      })),
      unserved: unserved.slice(0, UNSERVED),
    };
  }

  /** What was completed before this daemon began to listen. */
  async #remember(): Promise<void> {
    const heard = new Set(this.#completions);
    const { events } = await this.#options.events.latest({ streams: ['work'], limit: KEPT });
    const before = events.filter(({ event, at }) => event === 'task_completed' && !heard.has(Date.parse(at)));
    this.#completions.unshift(...before.map(({ at }) => Date.parse(at)));
  }
}
