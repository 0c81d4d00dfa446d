import { randomUUID } from 'node:crypto';
import { backOff, type Clock, jittered } from '../../clock.ts';
import type { LockChannels } from './channels.ts';
import type { AcquireOutcome } from './lock.ts';
import type { AcquireRequest, Locks } from './locks.ts';

export interface WaiterOptions {
  readonly locks: Locks;
  readonly channels: LockChannels;
  readonly clock: Clock;
}

export interface Patience {
  readonly blockMs: number;
  readonly signal: AbortSignal;
}

type Queued = AcquireOutcome & { outcome: 'queued' };

/** Words may be missed: who waits asks again at least this often, which also keeps its place. */
const ASK_AGAIN_MS = 2_000;
const SOONEST_MS = 10;
const DEADLOCK_RETRIES = 5;
const DEADLOCK_BACK_OFF = { baseMs: 100, maxMs: 5_000 };

/**
 * Waits in line until the lock is had, refused, or `waitMs` is over. The victim of a deadlock steps back and tries anew,
 * as old as it was; a waiter that was held up so long that it lost its place joins the end of the line.
 */
export class Waiter {
  readonly #options: WaiterOptions;

  constructor(options: WaiterOptions) {
    this.#options = options;
  }

  /** Asks until the lock is had or refused, for `blockMs` at most; then it answers `queued`, and the place is kept. */
  async ask(request: AcquireRequest, { blockMs, signal }: Patience): Promise<AcquireOutcome> {
    const { locks, clock } = this.#options;
    const asked = { ...request, lockId: request.lockId ?? randomUUID() };
    const deadline = clock.now() + Math.min(blockMs, request.waitMs ?? 0);
    return this.#listening(asked, async (bell) => {
      let outcome = await locks.acquire(asked);
      while (outcome.outcome === 'queued' && clock.now() < deadline && !signal.aborted) {
        await bell.next(this.#pause(outcome, deadline - clock.now()), signal);
        outcome = await locks.acquire({ ...asked, queued: true });
      }
      return outcome;
    });
  }

  /** Stays in line until `waitMs` is over. Gives up its place and throws the signal's reason when that is aborted. */
  async acquire(request: AcquireRequest, signal: AbortSignal = new AbortController().signal): Promise<AcquireOutcome> {
    const asked = { ...request, lockId: request.lockId ?? randomUUID() };
    return this.#listening(asked, (bell) => this.#ask(asked, bell, signal));
  }

  /** Listening begins before the first question, so that no word falls between the two. */
  async #listening<T>(asked: AcquireRequest, work: (bell: Bell) => Promise<T>): Promise<T> {
    const bell = new Bell(asked.agent, this.#options.clock);
    // Nobody calls whoever does not stand in line.
    const channels = asked.waitMs ? this.#channels(asked) : [];
    const stops = await Promise.all(channels.map((channel) => this.#options.channels.listen(channel, bell.heard)));
    try {
      return await work(bell);
    } finally {
      for (const stop of stops) stop();
    }
  }

  async #ask(asked: AcquireRequest & { lockId: string }, bell: Bell, signal: AbortSignal): Promise<AcquireOutcome> {
    const { locks, clock } = this.#options;
    const deadline = clock.now() + (asked.waitMs ?? 0);
    const left = () => Math.max(0, deadline - clock.now());
    let ask: AcquireRequest = asked;
    let deadlocks = 0;
    for (;;) {
      const outcome = await locks.acquire({ ...ask, waitMs: left() });
      if (outcome.outcome === 'queued') {
        if (left() > 0) await bell.next(this.#pause(outcome, left()), signal);
        if (signal.aborted || left() === 0) return this.#giveUp(asked, outcome, signal);
        ask = { ...asked, queued: true };
      } else if (outcome.outcome === 'evicted' && left() > 0) {
        ask = { ...asked, queued: false };
      } else if (outcome.outcome === 'deadlock' && left() > 0 && deadlocks < DEADLOCK_RETRIES) {
        await this.#cancel(asked);
        const pauseMs = backOff(deadlocks++, DEADLOCK_BACK_OFF.baseMs, DEADLOCK_BACK_OFF.maxMs);
        await clock.sleep(Math.min(pauseMs, left()), signal);
        signal.throwIfAborted();
        ask = { ...asked, queued: false, since: outcome.since };
      } else {
        return outcome;
      }
    }
  }

  async #giveUp(
    asked: AcquireRequest & { lockId: string },
    last: Queued,
    signal: AbortSignal,
  ): Promise<AcquireOutcome> {
    await this.#cancel(asked);
    signal.throwIfAborted();
    return { outcome: 'held', lockId: asked.lockId, blocked: last.blocked };
  }

  #cancel({ locks, agent, lockId }: AcquireRequest & { lockId: string }): Promise<boolean> {
    return this.#options.locks.cancelWait({ locks: locks.map(({ lock }) => lock), agent, lockId });
  }

  /** Until the lease in the way ends, if that is sooner. */
  #pause({ blocked }: Queued, leftMs: number): number {
    const leaseMs = blocked.freeInMs > 0 ? blocked.freeInMs : ASK_AGAIN_MS;
    return Math.min(Math.max(Math.min(leaseMs, jittered(ASK_AGAIN_MS * 0.8)), SOONEST_MS), leftMs);
  }

  #channels({ locks }: AcquireRequest): string[] {
    return locks.map(({ lock }) => this.#options.locks.scripts.lockKeys(lock).channel);
  }
}

/** Rings when a channel calls this agent: it is next, or the victim of a deadlock. A call that comes while nobody waits for it is kept. */
class Bell {
  readonly #words: readonly string[];
  readonly #clock: Clock;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(agent: string, clock: Clock) {
    this.#words = [`promoted:${agent}`, `deadlock:${agent}`];
    this.#clock = clock;
  }

  readonly heard = (word: string): void => {
    if (!this.#words.includes(word)) return;
    this.#rung = true;
    this.#wake?.();
  };

  async next(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) await this.#pause(ms, signal);
    this.#rung = false;
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const over = new AbortController();
    this.#wake = () => resolve(undefined);
    signal.addEventListener('abort', resolve, { once: true });
    void this.#clock.sleep(ms, over.signal).then(resolve);
    await promise;
    this.#wake = undefined;
    // The lock may be free: what is left to tidy up waits until the question is on its way.
    process.nextTick(() => {
      over.abort();
      signal.removeEventListener('abort', resolve);
    });
  }
}
