import { argsOf, askedBy, askedFor, type GrantRef, lockOf, partsOf, usualLock } from './asked.ts';
import { Capacities, type CapacityChange } from './capacities.ts';
import { ClusterIndexes } from './cluster-indexes.ts';
import type { CopiesWanted } from './copies.ts';
import { Lines, type Wish } from './lines.ts';
import {
  type AcquireOutcome,
  type Capacity,
  type HeartbeatOutcome,
  LEASE_CLASSES,
  type LockRef,
  type LockView,
  type ReleaseOutcome,
} from './lock.ts';
import { type ListRequest, type LockPage, LockReader } from './lock-reader.ts';
import { LockReturns } from './lock-returns.ts';
import { LockScripts, type LockScriptsOptions, NOBODY } from './lock-scripts.ts';
import { LockTaker } from './lock-taker.ts';
import { LockTurns } from './lock-turns.ts';
import type { Seen } from './lock-view.ts';
import { type DueList, type Reaped, Reaper } from './reaper.ts';
import { acquireOutcome, heartbeatOutcome } from './replies.ts';
import { heartbeat, leave } from './scripts.ts';
import { type AcquireRequest, acquireTerms, heartbeatTerms, type LockLimits, US } from './terms.ts';

export type { GrantRef } from './asked.ts';
export type { LockPage } from './lock-reader.ts';
export type { Wanted } from './lock-scripts.ts';
export type { AcquireRequest, LockLimits } from './terms.ts';

export interface LocksOptions extends LockScriptsOptions {
  readonly limits: () => LockLimits | Promise<LockLimits>;
  /** Counts an attempt of an agent against its limit; in milliseconds when it may try again, or 0. */
  readonly admit?: (agent: string) => Promise<number>;
  /** Grants count only when so many replicas have them. Default: none is asked. */
  readonly copies?: CopiesWanted;
}

export interface AbortedWait {
  readonly lock: LockRef;
  readonly agent: string;
  readonly lockId: string;
  readonly since: number;
  /** The evidence, for the victim. */
  readonly cycle: unknown;
}

/**
 * Locks of the ADE keyspace. Each call is one script on one server; in a cluster, where locks live in different slots,
 * several are taken one by one in a fixed order, and given back if one is not to be had.
 */
export class Locks {
  readonly scripts: LockScripts;
  /** Who of this process waits, to be called when a lock is given back here. */
  readonly lines = new Lines();
  readonly #taker: LockTaker;
  readonly #returns: LockReturns;
  readonly #reader: LockReader;
  readonly #indexes: ClusterIndexes | undefined;
  readonly #reaper: Reaper;
  readonly #capacities: Capacities;
  readonly #limits: LocksOptions['limits'];
  readonly #admit: LocksOptions['admit'];
  readonly #copies: CopiesWanted;

  constructor({ limits, admit, copies = { replicas: 0, withinMs: 0 }, ...rest }: LocksOptions) {
    const scripts = new LockScripts(rest);
    const reader = new LockReader(scripts);
    this.scripts = scripts;
    this.#reader = reader;
    const indexes = scripts.isCluster ? new ClusterIndexes(scripts, reader) : undefined;
    this.#indexes = indexes;
    this.#reaper = new Reaper(scripts, reader, indexes);
    const turns = new LockTurns(scripts, this.lines);
    this.#returns = new LockReturns({ scripts, turns, lines: this.lines, indexes });
    this.#taker = new LockTaker({ scripts, turns, returns: this.#returns, reaper: this.#reaper, indexes, copies });
    this.#capacities = new Capacities(scripts, reader);
    this.#limits = limits;
    this.#admit = admit;
    this.#copies = copies;
  }

  /** Asks once. `queued` means: ask again with the same lockId, soon, or when the lock's channel says `promoted:` you. */
  async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const limits = await this.#limits();
    const asked = askedFor(request);
    if (this.#admit && !request.queued) {
      const retryAfterMs = await this.#admit(asked.agent);
      if (retryAfterMs > 0) return { outcome: 'limited', retryAfterMs };
    }
    return await this.#taker.take(asked, request, limits);
  }

  /** What whoever gives the lock back may ask on behalf of one that waits; undefined if it is not usual. */
  async wishOf(request: AcquireRequest): Promise<Wish | undefined> {
    const terms = acquireTerms(request, await this.#limits());
    const asked = askedFor(request);
    const isUsual = this.#copies.replicas === 0 && usualLock(asked, terms, this.scripts) !== undefined;
    return isUsual ? { lock_id: asked.lockId, lease_us: terms.lease_us, purpose: terms.purpose } : undefined;
  }

  /** What came of that. */
  granted(answer: readonly string[], request: AcquireRequest): AcquireOutcome {
    const outcome = acquireOutcome(answer, askedFor(request));
    if (outcome.outcome === 'overdue') throw new Error('a release answered for a lease that is over');
    return outcome;
  }

  /** Renews, all or none; in a cluster one by one until one is lost. `lost` writes nothing. */
  async heartbeat(grant: GrantRef, extendMs?: number): Promise<HeartbeatOutcome> {
    const terms = heartbeatTerms(extendMs, await this.#limits());
    let outcome: HeartbeatOutcome | undefined;
    for (const part of partsOf(askedBy(grant), this.scripts)) {
      const reply = await this.scripts.run(lockOf(part), () =>
        this.scripts.scripts.run(heartbeat, this.scripts.all(part.wanted), { ...argsOf(part, this.scripts), ...terms }),
      );
      outcome = heartbeatOutcome(reply, part);
      if (outcome.outcome === 'lost') return outcome;
      await this.#indexes?.renewed(lockOf(part), terms.extend_us / US);
    }
    return outcome as HeartbeatOutcome;
  }

  /** How long a beat renews a lease of each class, within what is allowed: for scripts that renew several things at once. */
  async renewal(): Promise<{ readonly extend_us: number; readonly extend_agent_us: number }> {
    const limits = await this.#limits();
    const { extend_us } = heartbeatTerms(LEASE_CLASSES.process.leaseMs, limits);
    return { extend_us, extend_agent_us: heartbeatTerms(LEASE_CLASSES.agent.leaseMs, limits).extend_agent_us };
  }

  release(grant: GrantRef): Promise<readonly ReleaseOutcome[]> {
    return this.#returns.release(askedBy(grant), false);
  }

  /** Gives up a place in line. True if there was one. */
  async cancelWait({ locks, agent, lockId }: GrantRef): Promise<boolean> {
    const how = { lock_id: lockId, since_us: 0, word_us: 0, cycle: '' };
    const left = await Promise.all(locks.map((lock) => this.#leave(lock, agent, how)));
    return left.some((since) => since !== undefined);
  }

  /**
   * Takes a waiter out of the line as the victim of a deadlock; its next call is told the cycle. Undefined: it does not
   * wait there any more, or anew (`since` differs), so this deadlock is over.
   */
  abortWaiter({ lock, agent, lockId, since, cycle }: AbortedWait): Promise<number | undefined> {
    const word_us = LEASE_CLASSES.agent.waiterMs * US;
    return this.#leave(lock, agent, { lock_id: lockId, since_us: since, word_us, cycle: JSON.stringify(cycle) });
  }

  inspect(lock: LockRef): Promise<LockView> {
    return this.#reader.look(lock);
  }

  /** inspect(), with what only the sweeper wants to know. */
  look(lock: LockRef): Promise<Seen> {
    return this.#reader.look(lock);
  }

  /** Locks that are held, a page at a time; in no order. */
  list(request: ListRequest = {}): Promise<LockPage> {
    return this.#reader.list(request);
  }

  /** Every lock that someone waits for, with holders and waiters in order: what the deadlock detector looks at. */
  waitGraph(): Promise<readonly LockView[]> {
    return this.#reader.waitGraph();
  }

  /** Which locks an agent may be waiting for: a hint, to be confirmed by inspect(). */
  waitsFor(agent: string): Promise<readonly LockRef[]> {
    return this.#reader.waitsFor(agent);
  }

  /** Says how much an agent may do at once (registers it) and whether it takes new work. Undefined: it is unknown. */
  setCapacity(agent: string, change: CapacityChange): Promise<Capacity | undefined> {
    return this.#capacities.set(agent, change);
  }

  capacity(agent: string): Promise<Capacity | undefined> {
    return this.#capacities.get(agent);
  }

  /** The agent is no more: its limit and its places go with it. */
  removeCapacity(agent: string): Promise<boolean> {
    return this.#capacities.remove(agent);
  }

  /** Keys in a list of the sweeper whose time has come, by Redis. */
  dueKeys(list: DueList, limit: number): Promise<readonly string[]> {
    return this.#reaper.due(list, limit);
  }

  /** In how many seconds something of a list may be due; undefined if there is nothing in it. */
  nextDue(list: DueList): Promise<number | undefined> {
    return this.#reaper.next(list);
  }

  /** Takes out of a list of the sweeper what is no lock. */
  dropDue(list: DueList, key: string): Promise<void> {
    return this.#reaper.drop(list, key);
  }

  /** Lets the sweeper look at it later. */
  putOffDue(list: DueList, key: string, byMs: number): Promise<void> {
    return this.#reaper.putOff(list, key, byMs);
  }

  /** Ends what silent holders and waiters left at a lock. */
  reap(lock: LockRef): Promise<Reaped> {
    return this.#reaper.reap(lock);
  }

  /** The same for what one agent left there. */
  reapFor(lock: LockRef, agent: string = NOBODY): Promise<Reaped> {
    return this.#reaper.reapFor(lock, agent);
  }

  async #leave(lock: LockRef, agent: string, how: LeaveArgs): Promise<number | undefined> {
    const wanted = [{ lock }];
    const args = { ...this.scripts.common(wanted, agent), ...how };
    const call = () => this.scripts.scripts.run(leave, this.scripts.all(wanted), args);
    const [word, since] = await this.scripts.run(lock, call);
    await this.#indexes?.stoppedWaiting(lock, agent);
    return word === 'LEFT' ? Number(since) : undefined;
  }
}

interface LeaveArgs {
  readonly lock_id: string;
  readonly since_us: number;
  readonly word_us: number;
  readonly cycle: string;
}
