import { type Clock, jittered } from '../../clock.ts';
import type { Connection } from '../../redis/connection.ts';
import { type Service, service } from '../../service.ts';
import { type Candidate, GENERAL, lanesFor } from '../agents/matcher.ts';
import type { ClaimOutcome } from './lease.ts';
import type { TaskStore } from './task-store.ts';
import type { ClaimRequest, Work } from './work.ts';

export interface DeskOptions {
  readonly connection: Connection;
  readonly store: TaskStore;
  readonly work: Work;
  readonly clock: Clock;
}

interface Waiter {
  readonly who: Candidate;
  readonly lanes: ReadonlySet<string>;
  readonly wake: () => void;
}

/** A hint may get lost with its connection: those who wait look for themselves now and then. */
const LOOK_MS = 5_000;

/** Where agents wait for work. Each task that becomes ready wakes the one who waited longest and may take it. */
export class TaskDesk {
  readonly #options: DeskOptions;
  readonly #waiting = new Set<Waiter>();

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** Listens for tasks that become ready. Without it waiting works too, only slower. */
  listening(): Service {
    const { connection, store } = this.#options;
    const channel = store.keys.readyChannel();
    return service('task desk', async () => {
      const { subscriber } = connection;
      const hear = (from: string, lanes: string) => {
        if (from !== channel) return;
        for (const lane of lanes.split(' ')) this.#call(lane);
      };
      subscriber.on('message', hear);
      await subscriber.subscribe(channel);
      return () => {
        subscriber.off('message', hear);
        for (const waiter of this.#waiting) waiter.wake();
      };
    });
  }

  /** Claims; if there is nothing, waits for it. */
  async claim(
    request: ClaimRequest,
    { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  ): Promise<ClaimOutcome> {
    const { work, clock } = this.#options;
    const until = clock.now() + waitMs;
    for (;;) {
      // In line before asking, so that what becomes ready meanwhile is not missed.
      const place = this.#stand(request);
      try {
        const outcome = await work.claim(request);
        const left = until - clock.now();
        if (!waits(outcome) || left <= 0 || signal.aborted) return outcome;
        await clock.sleep(Math.min(left, jittered(LOOK_MS)), AbortSignal.any([signal, place.called]));
        if (signal.aborted) return outcome;
      } finally {
        place.leave();
      }
    }
  }

  /** Who waits here now. */
  waiting(): Candidate[] {
    return [...this.#waiting].map(({ who }) => who);
  }

  #stand({ type = GENERAL, capabilities = [] }: ClaimRequest) {
    const called = new AbortController();
    const who = { agent_type: type, capabilities };
    const waiter = { who, lanes: new Set(lanesFor(type)), wake: () => called.abort() };
    this.#waiting.add(waiter);
    return { called: called.signal, leave: () => this.#waiting.delete(waiter) };
  }

  #call(lane: string): void {
    for (const waiter of this.#waiting) {
      if (!waiter.lanes.has(lane)) continue;
      this.#waiting.delete(waiter);
      waiter.wake();
      return;
    }
  }
}

const waits = ({ outcome }: ClaimOutcome): boolean => outcome === 'none' || outcome === 'paused' || outcome === 'full';
