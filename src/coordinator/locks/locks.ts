import { randomUUID } from 'node:crypto';
import { ReeveError } from '../../errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { parseId } from '../../redis/ids.ts';
import { Capacities, type CapacityChange } from './capacities.ts';
import { ClusterIndexes } from './cluster-indexes.ts';
import { type CopiesWanted, copiesOf } from './copies.ts';
import { Lines, type Wish } from './lines.ts';
import {
  type AcquireOutcome,
  type Capacity,
  formatLock,
  type Grant,
  type HeartbeatOutcome,
  inLockOrder,
  LEASE_CLASSES,
  LOCK_ID,
  type LockRef,
  type LockView,
  lockIdSchema,
  lockName,
  type ReleaseOutcome,
} from './lock.ts';
import { type ListRequest, type LockPage, LockReader } from './lock-reader.ts';
import { LockScripts, type LockScriptsOptions, NOBODY, type Wanted } from './lock-scripts.ts';
import { LockTurns, type TaskLock } from './lock-turns.ts';
import type { Seen } from './lock-view.ts';
import { type DueList, type Reaped, Reaper } from './reaper.ts';
import { type Asked, acquireOutcome, heartbeatOutcome, releaseOutcomes } from './replies.ts';
import { acquire, heartbeat, leave, NOBODY_ALONG, release } from './scripts.ts';
import {
  type AcquireRequest,
  type AcquireTerms,
  acquireTerms,
  heartbeatTerms,
  type LockLimits,
  patienceMs,
  US,
} from './terms.ts';

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

/** Who holds what, or waits for it, by which request. */
export interface GrantRef {
  readonly locks: readonly LockRef[];
  readonly agent: string;
  readonly lockId: string;
}

export interface AbortedWait {
  readonly lock: LockRef;
  readonly agent: string;
  readonly lockId: string;
  readonly since: number;
  /** The evidence, for the victim. */
  readonly cycle: unknown;
}

/** More than one is rare; a lock that is overdue again and again would be a fault of ours. */
const MAX_REAPS = 20;

/**
 * Locks of the ADE keyspace. Each call is one script on one server; in a cluster, where locks live in different slots,
 * several are taken one by one in a fixed order, and given back if one is not to be had.
 */
export class Locks {
  readonly scripts: LockScripts;
  /** Who of this process waits, to be called when a lock is given back here. */
  readonly lines = new Lines();
  readonly #turns: LockTurns;
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
    this.#turns = new LockTurns(scripts, this.lines);
    this.#reader = reader;
    this.#indexes = scripts.isCluster ? new ClusterIndexes(scripts, reader) : undefined;
    this.#reaper = new Reaper(scripts, reader, this.#indexes);
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
    const outcome = this.#indexes ? this.#takeInTurn(asked, request, limits) : this.#take(asked, request, limits);
    return await outcome;
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
    for (const part of this.#parts(askedBy(grant))) {
      const reply = await this.#run(part, () =>
        this.scripts.scripts.run(heartbeat, this.#keys(part), { ...this.#args(part), ...terms }),
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
    return this.#release(askedBy(grant), false);
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

  #take(asked: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    const terms = acquireTerms(request, limits);
    if (this.#copies.replicas > 0) return this.#takeCopied(asked, (on) => this.#takeAlone(asked, terms, on));
    // Whoever would wait goes by itself: those who join a line must come to it in the order in which they asked.
    const lock = terms.wait === '' ? usualLock(asked, terms, this.scripts) : undefined;
    return lock ? this.#takeUsual(asked, lock, terms) : this.#takeAlone(asked, terms);
  }

  /** A grant that a failover would undo is none: it is given back. One had before stays, whoever asks for it again. */
  async #takeCopied(asked: Asked, take: (on: RedisClient) => Promise<AcquireOutcome>): Promise<AcquireOutcome> {
    const { replicas, withinMs } = this.#copies;
    const { lock } = this.scripts.lockKeys(lockOf(asked));
    const { outcome, copies } = await this.scripts.connection.exclusive(async (client) => {
      const taken = await take(client);
      const isGranted = taken.outcome === 'granted';
      return { outcome: taken, copies: isGranted ? await copiesOf(client, lock, this.#copies) : replicas };
    });
    if (copies >= replicas) return outcome;
    // If it cannot be given back, its lease ends it.
    if (outcome.outcome === 'granted' && !outcome.again) await this.#release(asked, true).catch(() => {});
    throw new ReeveError('LOCK_NOT_COPIED', { lock: formatLock(lockOf(asked)), copies, replicas, withinMs });
  }

  async #takeUsual(asked: Asked, lock: TaskLock, terms: AcquireTerms): Promise<AcquireOutcome> {
    const { agent, lockId: lock_id } = asked;
    const { lease_us, purpose } = terms;
    const reply = await this.#turns.acquire({ lock, agent, lock_id, lease_us, purpose });
    const outcome = acquireOutcome(reply, asked);
    return outcome.outcome === 'overdue' ? this.#takeAlone(asked, terms) : outcome;
  }

  async #takeAlone(asked: Asked, terms: AcquireTerms, on?: RedisClient): Promise<AcquireOutcome> {
    const keys = this.#keys(asked);
    const args = { ...this.#args(asked), ...terms };
    for (let reaps = 0; ; reaps++) {
      const reply = await this.#run(asked, () => this.scripts.scripts.run(acquire, keys, args, on));
      const outcome = acquireOutcome(reply, asked);
      if (outcome.outcome !== 'overdue') return outcome;
      if (reaps >= MAX_REAPS) throw new Error(`${lockName(outcome.lock)} stays overdue`);
      for (const agent of outcome.agents) await this.#reaper.reapFor(outcome.lock, agent);
    }
  }

  /** In a cluster: what was taken is given back, as if it had never been, when the next is not to be had. */
  async #takeInTurn(asked: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    const isOne = asked.wanted.length === 1;
    const since = isOne || !request.waitMs ? request.since : await this.#age(asked, request.since);
    const taken: Asked[] = [];
    const grants: Grant[] = [];
    let again = true;
    const giveBack = async () => {
      for (const done of taken.reverse()) await this.#release(done, true);
    };
    for (const part of this.#parts(asked)) {
      const how = { ...request, since, queued: request.queued && isOne };
      const outcome = await this.#takeIndexed(part, how, limits).catch(async (error: unknown) => {
        // What cannot be given back either, for its node is gone, too, ends with its lease.
        await giveBack().catch(() => {});
        throw error;
      });
      if (outcome.outcome !== 'granted') {
        await giveBack();
        return outcome;
      }
      again &&= outcome.again;
      if (!outcome.again) taken.push(part);
      grants.push(...outcome.grants);
    }
    return { outcome: 'granted', lockId: asked.lockId, grants, again };
  }

  async #takeIndexed(part: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    const [lock, { agent }] = [lockOf(part), part];
    const { lease_us, lease_class } = acquireTerms(request, limits);
    const waits = (request.waitMs ?? 0) > 0;
    const leaseMs = lease_us / US + LEASE_CLASSES[lease_class].graceMs;
    await this.#indexes?.intend(lock, agent, leaseMs, waits ? patienceMs(request) : undefined);
    const outcome = await this.#take(part, request, limits);
    if (outcome.outcome === 'granted') {
      await this.#indexes?.granted(lock, agent, leaseMs, waits);
    } else {
      await this.#indexes?.ended(lock, agent);
      if (outcome.outcome !== 'queued') await this.#indexes?.stoppedWaiting(lock, agent);
    }
    return outcome;
  }

  /** Since when it waits in any of the lines: it is as old in all of them, so that nobody waits in a circle. */
  async #age({ wanted, lockId }: Asked, known = Number.POSITIVE_INFINITY): Promise<number | undefined> {
    const redis = this.scripts.connection.commands;
    const waits = await Promise.all(wanted.map(({ lock }) => redis.hget(this.scripts.lockKeys(lock).waiters, lockId)));
    const ages = waits.map((text) => Number(text?.split('|')[1])).filter((age) => age > 0);
    const oldest = Math.min(...ages, known);
    return Number.isFinite(oldest) ? oldest : undefined;
  }

  async #release(asked: Asked, isForgotten: boolean): Promise<readonly ReleaseOutcome[]> {
    const outcomes: ReleaseOutcome[] = [];
    for (const part of this.#parts(asked)) {
      const reply = await this.#releasePart(part, isForgotten);
      outcomes.push(...releaseOutcomes(reply, part));
      // A lock that is lost but not yet swept must stay where the sweeper finds it. One that was given back before may have
      // left its entries, if that call ended halfway.
      if (outcomes.at(-1)?.outcome !== 'lost') await this.#indexes?.ended(lockOf(part), part.agent);
    }
    return outcomes;
  }

  #releasePart(part: Asked, isForgotten: boolean): Promise<readonly string[]> {
    const lock = isForgotten ? undefined : oneTask(part, this.scripts);
    if (lock) return this.#turns.release({ lock, agent: part.agent, lock_id: part.lockId });
    const args = { ...this.#args(part), forget: Number(isForgotten), ...NOBODY_ALONG };
    const reply = this.#run(part, () => this.scripts.scripts.run(release, this.#keys(part), args));
    for (const { lock } of part.wanted) this.lines.next(lock)?.call();
    return reply;
  }

  async #leave(lock: LockRef, agent: string, how: LeaveArgs): Promise<number | undefined> {
    const wanted = [{ lock }];
    const args = { ...this.scripts.common(wanted, agent), ...how };
    const call = () => this.scripts.scripts.run(leave, this.scripts.all(wanted), args);
    const [word, since] = await this.scripts.run(lock, call);
    await this.#indexes?.stoppedWaiting(lock, agent);
    return word === 'LEFT' ? Number(since) : undefined;
  }

  /** One script takes all on one server; in a cluster each lock is a call of its own. */
  #parts(asked: Asked): readonly Asked[] {
    return this.#indexes ? asked.wanted.map((each) => ({ ...asked, wanted: [each] })) : [asked];
  }

  #keys({ wanted }: Asked) {
    return this.scripts.all(wanted);
  }

  #args({ wanted, agent, lockId }: Asked) {
    return { ...this.scripts.common(wanted, agent), lock_id: lockId };
  }

  #run(asked: Asked, call: Parameters<typeof this.scripts.run<readonly string[]>>[1]) {
    return this.scripts.run(lockOf(asked), call);
  }
}

interface LeaveArgs {
  readonly lock_id: string;
  readonly since_us: number;
  readonly word_us: number;
  readonly cycle: string;
}

/** If it is one task's own lock, on one server. */
function oneTask({ wanted: [one, another] }: Asked, { isCluster }: LockScripts): TaskLock | undefined {
  return !isCluster && !another && one?.lock.kind === 'task' && one.mode !== 'shared' ? one.lock : undefined;
}

/** If it is nothing that only acquire.lua knows. */
const usualLock = (asked: Asked, { lease_class, hold_us }: AcquireTerms, scripts: LockScripts) =>
  lease_class === 'process' && hold_us === 0 ? oneTask(asked, scripts) : undefined;

const lockOf = ({ wanted }: Asked): LockRef => (wanted[0] as Wanted).lock;
const askedBy = ({ locks, agent, lockId }: GrantRef): Asked => ({
  wanted: locks.map((lock) => ({ lock })),
  agent,
  lockId,
});

function askedFor({ locks, agent, lockId = randomUUID() }: AcquireRequest): Asked {
  const wanted = locks.length > 1 ? eachOnce(locks).sort((a, b) => inLockOrder(a.lock, b.lock)) : locks;
  return { wanted, agent: parseId('agent', agent), lockId: LOCK_ID.test(lockId) ? lockId : lockIdSchema.parse(lockId) };
}

/** A lock that is named twice is one, and exclusive if either wish was: granted twice, its first token would be stale at once. */
function eachOnce(locks: readonly Wanted[]): Wanted[] {
  const byName = new Map<string, Wanted>();
  for (const one of locks) {
    const known = byName.get(lockName(one.lock));
    if (!known || known.mode === 'shared') byName.set(lockName(one.lock), one);
  }
  return [...byName.values()];
}
