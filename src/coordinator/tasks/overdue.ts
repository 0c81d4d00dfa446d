import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log.ts';
import { LEASE_CLASSES, type LeaseClass } from '../locks/lock.ts';
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
/** So long they have then to speak again: a process beats by itself, a model when it has done thinking. */
const GRACE_MS = { process: LEASE_CLASSES.process.leaseMs, agent: LEASE_CLASSES.agent.graceMs };

/** What the clock brings to tasks: back-offs and pauses that are over, leases that ended unsaid, work that takes too long. */
export class Overdue {
  readonly #options: OverdueOptions;
  #lookedAt: number | undefined;
  #sightedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OverdueOptions) {
    this.#options = options;
  }

  async dueOnce(): Promise<Due> {
    const { store, pauses } = this.#options;
    const released = await store.scripts.run(due, {}, { ...store.common(), limit: BATCH });
    await pauses.followOnce();
    const { suspects, blindMs } = await this.#overdue({ looks: true });
    this.#opensEyes(blindMs);
    const lost: string[] = [];
    for (const task of this.#trusts('process') ? [] : suspects) {
      const found = await this.#look(task);
      if (found.word !== 'LOST' || this.#trusts(found.leaseClass)) continue;
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

  #overdue({ looks = false } = {}) {
    const { store } = this.#options;
    return store.scripts.run(overdue, {}, { limit: BATCH, looks: Number(looks) });
  }

  async #look(task: string): Promise<Found> {
    const { store } = this.#options;
    const [word = '', lockId = '', agent = '', status = '', leaseClass] = await store.scripts.run(
      lapse,
      {},
      { ...store.common(), task },
    );
    return { word, lockId, agent, status, leaseClass: leaseClass === 'agent' ? 'agent' : 'process' };
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

  /** Notes when this daemon began to hear agents again, if for a while it, or before its start anybody, did not. */
  #opensEyes(unseenMs: number): void {
    const { clock, log } = this.#options;
    const now = clock.now();
    const blindMs = this.#lookedAt === undefined ? unseenMs : now - this.#lookedAt;
    this.#lookedAt = now;
    if (blindMs <= BLIND_MS) return;
    this.#sightedAt = now;
    log.warn('nobody looked after leases for a while: silent agents get time to speak', {
      blindMs,
      graceMs: GRACE_MS.process,
    });
  }

  /** Whether leases that seem to have ended are given time. */
  #trusts(leaseClass: LeaseClass): boolean {
    return this.#options.clock.now() < this.#sightedAt + GRACE_MS[leaseClass];
  }
}

interface Found {
  readonly word: string;
  readonly lockId: string;
  readonly agent: string;
  readonly status: string;
  readonly leaseClass: LeaseClass;
}
