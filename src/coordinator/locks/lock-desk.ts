import type { Clock } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { EventLog } from '../../events/event-log.ts';
import type { Logger } from '../../log.ts';
import type { LockChannels } from './channels.ts';
import { type AcquireOutcome, formatLock, type HeartbeatOutcome, type LockRef } from './lock.ts';
import type { AcquireRequest, GrantRef, Locks } from './locks.ts';
import { type Patience, Waiter } from './waiter.ts';

export interface LockDeskOptions {
  readonly locks: Locks;
  readonly channels: LockChannels;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Logger;
}

const TELL_AGAIN_MS = 60_000;

/** Asks for locks on behalf of the doors: stays on the line for a caller that can wait, and tells of lines that are full. */
export class LockDesk {
  readonly #options: LockDeskOptions;
  readonly #waiter: Waiter;
  readonly #told = new Map<string, number>();

  constructor(options: LockDeskOptions) {
    this.#options = options;
    this.#waiter = new Waiter(options);
  }

  /** Answers when the lock is had or refused, and in line after `blockMs` at the latest. */
  async ask(request: AcquireRequest, patience: Patience): Promise<AcquireOutcome> {
    const outcome = await this.#waiter.ask(request, patience);
    if (outcome.outcome === 'full') await this.#tellFull(outcome.lock, request.agent, outcome.depth);
    return outcome;
  }

  beat(grant: GrantRef, extendMs?: number): Promise<HeartbeatOutcome> {
    return this.#options.locks.heartbeat(grant, extendMs);
  }

  /** An operator should know, but not from every one of those who are turned away. */
  async #tellFull(lock: LockRef, agent: string, depth: number): Promise<void> {
    const { clock, events, log } = this.#options;
    const name = formatLock(lock);
    const now = clock.now();
    if (now - (this.#told.get(name) ?? Number.NEGATIVE_INFINITY) < TELL_AGAIN_MS) return;
    for (const [known, at] of this.#told) if (now - at >= TELL_AGAIN_MS) this.#told.delete(known);
    this.#told.set(name, now);
    log.warn('the line before a lock is full', { lock: name, depth });
    const told = events.append('lock:queue_full', { lock: name, agent_id: agent, depth });
    await told.catch((error: unknown) => log.warn('event not written', { problem: reason(error) }));
  }
}
