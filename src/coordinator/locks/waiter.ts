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

  /** Gives up its place and throws the signal's reason when that is aborted. */
  async acquire(request: AcquireRequest, signal: AbortSignal = new AbortController().signal): Promise<AcquireOutcome> {
    const asked = { ...request, lockId: request.lockId ?? randomUUID() };
    const bell = new Bell(asked.agent, this.#options.clock);
    // Listening begins before the first question, so that no word falls between the two.
    const stops = await Promise.all(
      this.#channels(asked).map((channel) => this.#options.channels.listen(channel, bell.heard)),
    );
    try {
      return await this.#ask(asked, bell, signal);
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

  /** The last try and the leaving are two calls: whoever is called in between takes the lock and keeps it. */
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

/** Rings when a channel calls this agent. A call that comes while nobody waits for it is kept. */
class Bell {
  readonly #word: string;
  readonly #clock: Clock;
  #rung = false;
  #ring = new AbortController();

  constructor(agent: string, clock: Clock) {
    this.#word = `promoted:${agent}`;
    this.#clock = clock;
  }

  readonly heard = (word: string): void => {
    if (word !== this.#word) return;
    this.#rung = true;
    this.#ring.abort();
  };

  async next(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung) {
      this.#ring = new AbortController();
      await this.#clock.sleep(ms, AbortSignal.any([this.#ring.signal, signal]));
    }
    this.#rung = false;
  }
}
