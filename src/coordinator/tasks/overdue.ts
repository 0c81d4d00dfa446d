import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { LEASE_CLASSES } from '../locks/lock.ts';
import type { Pauses } from './pauses.ts';
import { due, lapse, overdue } from './scripts.ts';
import type { TaskStore } from './task-store.ts';
import { RAW, type Work } from './work.ts';

export interface OverdueOptions {
  readonly store: TaskStore;
  readonly work: Work;
  readonly pauses: Pauses;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Due {
  /** Tasks whose back-off is over. */
  readonly released: readonly string[];
  readonly lost: readonly string[];
}

const BATCH = 200;
/** Who has not looked for longer was cut off from Redis, or stood still: agents may have spoken to it in vain. */
const BLIND_MS = 15_000;
/** So long they have then to speak again. */
const GRACE_MS = LEASE_CLASSES.process.leaseMs;

/** What the clock brings to tasks: back-offs and pauses that are over, leases that ended unsaid, work that takes too long. */
export class Overdue {
  readonly #options: OverdueOptions;
  #lookedAt: number | undefined;
  #trustsUntil = 0;

  constructor(options: OverdueOptions) {
    this.#options = options;
  }

  async dueOnce(): Promise<Due> {
    const { store, pauses } = this.#options;
    const released = await store.scripts.run(due, {}, { ...store.common(), limit: BATCH });
    await pauses.followOnce();
    const { suspects } = await this.#overdue();
    const lost: string[] = [];
    for (const task of this.#isTrusting() ? [] : suspects) {
      const found = await this.#look(task);
      if (found.word !== 'LOST') continue;
      await this.#lost(task, found);
      lost.push(task);
    }
    return { released, lost };
  }

  /** Ends what takes longer than it may: all of it, or only this task if it is one of that. Nothing else ends for it. */
  async timeOutOnce(task?: string): Promise<readonly string[]> {
    const suspects = task === undefined ? (await this.#overdue()).suspects : [task];
    const timedOut: string[] = [];
    for (const one of suspects) {
      const found = await this.#look(one);
      if (found.word !== 'TIMEOUT') continue;
      await this.#timedOut(one, found);
      timedOut.push(one);
    }
    return timedOut;
  }

  /** In how many seconds something may be overdue, as far as anyone can know; undefined: nothing is worked on. */
  async nextSeconds(): Promise<number | undefined> {
    return (await this.#overdue()).nextSeconds;
  }

  #overdue() {
    const { store } = this.#options;
    return store.scripts.run(overdue, {}, { limit: BATCH });
  }

  async #look(task: string): Promise<Found> {
    const { store } = this.#options;
    const [word = '', lockId = '', agent = '', status = ''] = await store.scripts.run(
      lapse,
      {},
      { ...store.common(), task },
    );
    return { word, lockId, agent, status };
  }

  async #lost(task: string, { lockId, agent, status }: Found): Promise<void> {
    const { store, work } = this.#options;
    const [[claims] = []] = await store.records([task], ['claims']);
    await work.reapLocks(task, agent, claims ?? '');
    // One that was popped from the list by somebody who then never said a word was not tried.
    const isUnheard = status === 'assigned' && agent.startsWith(RAW);
    const error = `${agent} fell silent and its lease ended`;
    await work.fail({ task, agent, lockId }, { class: isUnheard ? 'unheard' : 'lost', error, isForced: true });
  }

  async #timedOut(task: string, { lockId, agent }: Found): Promise<void> {
    const { store, work } = this.#options;
    const [[seconds] = []] = await store.records([task], ['timeout']);
    const error = `it took longer than ${seconds} s`;
    await work.fail({ task, agent, lockId }, { class: 'timeout', error, isForced: true });
  }

  /** Whether leases that seem to have ended are given time, because this daemon heard nobody for a while. */
  #isTrusting(): boolean {
    const { clock, log } = this.#options;
    const now = clock.now();
    const blindMs = now - (this.#lookedAt ?? now);
    this.#lookedAt = now;
    if (blindMs > BLIND_MS) {
      this.#trustsUntil = now + GRACE_MS;
      log.warn('cut off for a while: silent agents get time to speak', { cutOffMs: blindMs, graceMs: GRACE_MS });
    }
    return now < this.#trustsUntil;
  }
}

interface Found {
  readonly word: string;
  readonly lockId: string;
  readonly agent: string;
  readonly status: string;
}
