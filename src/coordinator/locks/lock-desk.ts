import { randomUUID } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { EventLog } from '../../events/event-log.ts';
import type { Tail } from '../../events/tail.ts';
import type { Logger } from '../../log.ts';
import { type AcquireOutcome, formatLock, type HeartbeatOutcome, LEASE_CLASSES, type LockRef } from './lock.ts';
import type { AcquireRequest, GrantRef, Locks } from './locks.ts';

export interface LockDeskOptions {
  readonly locks: Locks;
  readonly tail: Tail;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A word that was missed costs no more than this. */
const ASK_AGAIN_MS = 2_000;
const TELL_AGAIN_MS = 60_000;
const WORDS = new Set(['lock:promoted', 'lock:deadlock']);

/** Asks for locks on behalf of the doors: stays on the line for a caller that can wait, and tells of lines that are full. */
export class LockDesk {
  readonly #options: LockDeskOptions;
  readonly #told = new Map<string, number>();

  constructor(options: LockDeskOptions) {
    this.#options = options;
  }

  /** Answers when the lock is had or refused, and in line after `blockMs` at the latest. */
  async ask(
    request: AcquireRequest,
    { blockMs, signal }: { readonly blockMs: number; readonly signal: AbortSignal },
  ): Promise<AcquireOutcome> {
    const { locks, clock } = this.#options;
    const asked = { ...request, lockId: request.lockId ?? randomUUID() };
    const deadline = clock.now() + Math.min(blockMs, request.waitMs ?? 0);
    // Listening begins before the question, so that no word falls between the two.
    const calls = this.#calls(request.agent);
    try {
      let outcome = await locks.acquire(asked);
      while (outcome.outcome === 'queued' && clock.now() < deadline && !signal.aborted) {
        await calls.next(Math.min(ASK_AGAIN_MS, deadline - clock.now()), signal);
        outcome = await locks.acquire({ ...asked, queued: true });
      }
      if (outcome.outcome === 'full') await this.#tellFull(outcome.lock, request.agent, outcome.depth);
      return outcome;
    } finally {
      calls.stop();
    }
  }

  /** Renews by what was asked for, else by the usual lease of the holder's class. */
  async beat(grant: GrantRef, extendMs?: number): Promise<HeartbeatOutcome> {
    const { locks } = this.#options;
    const [lock] = grant.locks;
    if (extendMs !== undefined || lock === undefined) return locks.heartbeat(grant, extendMs);
    const { holders } = await locks.inspect(lock);
    const isAgent = holders.some(({ lockId, leaseClass }) => lockId === grant.lockId && leaseClass === 'agent');
    return locks.heartbeat(grant, isAgent ? LEASE_CLASSES.agent.leaseMs : undefined);
  }

  /** Words for one agent: it is next, or it is the victim of a deadlock. */
  #calls(agent: string) {
    const { tail, clock } = this.#options;
    let call = new AbortController();
    const stop = tail.listen(({ event, payload }) => {
      if (WORDS.has(event) && payload.agent_id === agent) call.abort();
    });
    return {
      stop,
      next: async (ms: number, signal: AbortSignal) => {
        await clock.sleep(ms, AbortSignal.any([call.signal, signal]));
        call = new AbortController();
      },
    };
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
