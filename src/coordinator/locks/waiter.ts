import { randomUUID } from 'node:crypto';
import { backOff, type Clock, jittered } from '../../clock.ts';
import type { Listener, Listening, LockChannels } from './channels.ts';
import type { InLine, Wish } from './lines.ts';
import { type AcquireOutcome, type LockRef, lockName } from './lock.ts';
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

interface Turn {
  readonly asked: AcquireRequest;
  readonly leftMs: number;
  readonly signal: AbortSignal;
}

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
        const again = { ...asked, queued: true };
        const turn = { asked: again, leftMs: deadline - clock.now(), signal };
        outcome = (await this.#turn(bell, outcome, turn)) ?? (await locks.acquire(again));
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
    try {
      // Nobody calls whoever does not stand in line.
      if (asked.waitMs) await Promise.all(asked.locks.map(({ lock }) => this.#listen(lock, bell)));
      return await work(bell);
    } finally {
      bell.stop();
    }
  }

  async #listen(lock: LockRef, bell: Bell): Promise<void> {
    const { channels, locks } = this.#options;
    bell.hears(lock, await channels.listen(locks.scripts.lockKeys(lock).channel, bell));
  }

  /** Until it is called, or it is time to ask again; or it has got the lock from whoever gave it back. */
  async #turn(bell: Bell, queued: Queued, turn: Turn): Promise<AcquireOutcome | undefined> {
    const { locks } = this.#options;
    const { lock } = queued.blocked;
    const leave = locks.lines.enter(lock, bell.inLine(lock, queued.position, await locks.wishOf(turn.asked)));
    try {
      await bell.next(this.#pause(queued, turn.leftMs), turn.signal);
    } finally {
      leave();
    }
    const answer = await bell.answer();
    return answer && locks.granted(answer, turn.asked);
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
        const handed = left() > 0 && (await this.#turn(bell, outcome, { asked, leftMs: left(), signal }));
        if (handed) return handed;
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
}

/** Rings when this agent is called: it is next, or the victim of a deadlock. A call that comes while nobody waits for it is kept. */
class Bell implements Listener {
  readonly words: readonly string[];
  readonly #clock: Clock;
  readonly #heard = new Map<string, Listening>();
  #rung = false;
  #answer: Promise<readonly string[] | undefined> | undefined;
  #wake: (() => void) | undefined;

  constructor(agent: string, clock: Clock) {
    this.words = [`promoted:${agent}`, `deadlock:${agent}`];
    this.#clock = clock;
  }

  hears(lock: LockRef, listening: Listening): void {
    this.#heard.set(lockName(lock), listening);
  }

  stop(): void {
    for (const listening of this.#heard.values()) listening.stop();
  }

  heard(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** It is next when everyone before it is known to have got the lock, and nobody asks on its behalf yet. */
  inLine(lock: LockRef, position: number, wish: Wish | undefined): InLine {
    const listening = this.#heard.get(lockName(lock));
    const turn = (listening?.grants() ?? 0) + position - 1;
    return {
      wish,
      isNext: () => !this.#answer && listening !== undefined && listening.grants() >= turn,
      call: () => this.heard(),
      asked: (answer) => {
        this.#answer = answer.catch(() => undefined);
        void this.#answer.then(() => this.heard());
      },
    };
  }

  /** What was answered to who asked on its behalf; undefined if nobody did, or in vain. */
  async answer(): Promise<readonly string[] | undefined> {
    const answer = await this.#answer;
    this.#answer = undefined;
    return answer;
  }

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
