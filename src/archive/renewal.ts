import type { Clock } from '../clock.ts';
import { page } from '../coordinator/tasks/scripts.ts';
import { TASK_STATES } from '../coordinator/tasks/task.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import { ENDED_STATES } from './archived-task.ts';
import { renew } from './scripts.ts';

export interface RenewalOptions {
  readonly tasks: TaskStore;
  readonly clock: Clock;
}

/** A task that has not ended is renewed whenever it has become so much older: thrice before Redis would forget it. */
const EVERY_SECONDS = 30 * 86_400;
/** What is older than so many times that is looked at in every turn. */
const MOST_TURNS = 60;
const BATCH = 100;

const OPEN_STATES = TASK_STATES.filter((state) => !(ENDED_STATES as readonly string[]).includes(state));

/** A part of an index, by age: after `from`, up to and with `to`, in seconds. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * Keeps Redis from forgetting tasks that have not ended: their keys live for 90 days, and a task may wait for longer. Looked at are only
 * those that came to the age since the last look, so that it costs nothing how many there are; the first look after a start is at all
 * that are old enough.
 */
export class Renewal {
  readonly #options: RenewalOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  /** Answers with how many were renewed. */
  async renewOnce(signal?: AbortSignal): Promise<number> {
    const { tasks, clock } = this.#options;
    await tasks.current();
    const now = clock.now() / 1000;
    let renewed = 0;
    for (const state of OPEN_STATES) {
      const index = tasks.keys.tasksByState(state);
      for (const span of spans(now, this.#lookedAt, await this.#oldest(index))) {
        renewed += await this.#renew(index, span, signal);
      }
    }
    if (!signal?.aborted) this.#lookedAt = now;
    return renewed;
  }

  async #oldest(index: string): Promise<number> {
    const [, born] = await this.#options.tasks.connection.commands.zrange(index, '0', '0', 'WITHSCORES');
    return born === undefined ? Number.POSITIVE_INFINITY : Number(born);
  }

  async #renew(index: string, { from, to }: Span, signal?: AbortSignal): Promise<number> {
    const { tasks } = this.#options;
    let renewed = 0;
    // Nobody is called by the highest character: the place after all that were born at that moment.
    let place = Number.isFinite(from) ? { score: String(from), member: LAST } : { score: '', member: '' };
    while (!signal?.aborted) {
      const flat = await tasks.scripts.run(page, { index }, { ...place, count: BATCH });
      const entries = flat.flatMap((member, at) => (at % 2 === 0 ? [{ member, score: flat[at + 1]! }] : []));
      const due = entries.filter(({ score }) => Number(score) <= to).map(({ member }) => member);
      renewed += await this.#renewAll(due.filter((id) => id.startsWith(tasks.head)));
      if (due.length < BATCH) break;
      place = entries.at(-1)!;
    }
    return renewed;
  }

  /** The indexes are those of all projects; what is not known in this one is not of it. */
  async #renewAll(ids: readonly string[]): Promise<number> {
    const { tasks } = this.#options;
    const local = ids.map((id) => id.slice(tasks.head.length));
    const known = await tasks.known(local);
    const own = local.filter((id) => known.has(id));
    return own.length === 0 ? 0 : tasks.scripts.run(renew, {}, { head: tasks.head, tasks: own, ended: ENDED_STATES });
  }
}

/** No id has it. */
const LAST = '\u{10FFFF}';

/** The ages to which tasks came since the last look, and nothing where none can be so old. What is to be born yet is always among them. */
export function spans(now: number, lookedAt: number, oldest: number): Span[] {
  const ahead = { from: now, to: Number.POSITIVE_INFINITY };
  if (now - lookedAt >= EVERY_SECONDS) return [{ from: Number.NEGATIVE_INFINITY, to: now - EVERY_SECONDS }, ahead];
  const found: Span[] = [];
  for (let turn = 1; turn < MOST_TURNS && now - turn * EVERY_SECONDS >= oldest; turn++) {
    found.push({ from: lookedAt - turn * EVERY_SECONDS, to: now - turn * EVERY_SECONDS });
  }
  if (now - MOST_TURNS * EVERY_SECONDS >= oldest) {
    found.push({ from: Number.NEGATIVE_INFINITY, to: now - MOST_TURNS * EVERY_SECONDS });
  }
  return [...found, ahead];
}
