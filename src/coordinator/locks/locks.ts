import { randomUUID } from 'node:crypto';
import { isId, parseId } from '../../redis/ids.ts';
import { ClusterIndexes } from './cluster-indexes.ts';
import {
  type AcquireOutcome,
  type Capacity,
  type CapacityStatus,
  type HeartbeatOutcome,
  inLockOrder,
  LEASE_CLASSES,
  type LeaseClass,
  type LockRef,
  type LockView,
  lockIdSchema,
  lockName,
  type ReleaseOutcome,
} from './lock.ts';
import { LockScripts, type LockScriptsOptions, type Wanted } from './lock-scripts.ts';
import { lockView, type Seen } from './lock-view.ts';
import { type Asked, acquireOutcome, heartbeatOutcome, releaseOutcomes } from './replies.ts';
import { acquire, capacity, due, heartbeat, inspect, leave, reap, release } from './scripts.ts';

export type { Wanted } from './lock-scripts.ts';

/** What is allowed; asked on each call, since the live settings may change. */
export interface LockLimits {
  /** Lease of the process class without a wish. */
  readonly leaseMs: number;
  readonly maxLeaseMs: number;
  /** Longest line before a lock; beyond it: full. */
  readonly depth: number;
}

export interface LocksOptions extends LockScriptsOptions {
  readonly limits: () => LockLimits | Promise<LockLimits>;
  /** Counts an attempt of an agent against its limit; in milliseconds when it may try again, or 0. */
  readonly admit?: (agent: string) => Promise<number>;
}

export interface AcquireRequest {
  /** One, or several, all or nothing. */
  readonly locks: readonly Wanted[];
  readonly agent: string;
  /** Asking again with the same one is the same request. Default: a new one. */
  readonly lockId?: string | undefined;
  readonly purpose?: string | undefined;
  readonly leaseClass?: LeaseClass | undefined;
  readonly leaseMs?: number | undefined;
  /** No heartbeat extends beyond this long after the grant. */
  readonly maxHoldMs?: number | undefined;
  /** How long to stay in line; 0 does not join it. */
  readonly waitMs?: number | undefined;
  /** For show, and to choose among equal victims of a deadlock; the order is by arrival. */
  readonly priority?: number | undefined;
  /** The caller was told `queued` before: answer `evicted` if its place was given up. */
  readonly queued?: boolean | undefined;
  /** The age of a wait that was broken off by a deadlock, so that the retry keeps it. */
  readonly since?: number | undefined;
}

/** Who holds what, by which request. */
export interface GrantRef {
  readonly locks: readonly LockRef[];
  readonly agent: string;
  readonly lockId: string;
}

const US = 1000;
const MAX_REAPS = 20;
const PAGE = 100;
/** Whose indexes are declared where a sweep concerns nobody in particular. */
const NOBODY = 'nobody';

/**
 * The locks of the ADE seed. Each call is one script on one server; in a cluster, where locks live in different slots,
 * several are taken one by one in a fixed order, and given back if one is not to be had.
 */
export class Locks {
  readonly scripts: LockScripts;
  readonly #limits: LocksOptions['limits'];
  readonly #admit: LocksOptions['admit'];
  readonly #indexes: ClusterIndexes | undefined;

  constructor({ limits, admit, ...rest }: LocksOptions) {
    this.scripts = new LockScripts(rest);
    this.#limits = limits;
    this.#admit = admit;
    if (this.scripts.isCluster)
      this.#indexes = new ClusterIndexes(this.scripts, (lock, agent) => this.#held(lock, agent));
  }

  /** Asks once. `queued` means: ask again with the same lockId, soon, or when the lock's channel says `promoted:` you. */
  async acquire(request: AcquireRequest): Promise<AcquireOutcome> {
    const limits = await this.#limits();
    const asked = this.#asked(request);
    if (this.#admit && !request.queued) {
      const retryAfterMs = await this.#admit(asked.agent);
      if (retryAfterMs > 0) return { outcome: 'limited', retryAfterMs };
    }
    return this.#indexes ? this.#takeInTurn(asked, request, limits) : this.#take(asked, request, limits);
  }

  /** Renews, all or none. `lost` writes nothing. */
  async heartbeat(grant: GrantRef, extendMs?: number): Promise<HeartbeatOutcome> {
    const limits = await this.#limits();
    const wanted = grant.locks.map((lock) => ({ lock }));
    const asked = { wanted, agent: grant.agent, lockId: grant.lockId };
    const ms = Math.min(Math.max(extendMs ?? limits.leaseMs, 1), limits.maxLeaseMs);
    let last: HeartbeatOutcome | undefined;
    for (const part of this.#parts(asked)) {
      const args = { ...this.scripts.common(part.wanted, asked.agent), lock_id: asked.lockId, extend_us: ms * US };
      last = heartbeatOutcome(
        await this.#run(part.wanted, () => this.scripts.scripts.run(heartbeat, this.#keys(part), args)),
        part,
      );
      if (last.outcome === 'lost') return last;
      await this.#indexes?.renewed(lockOf(part), ms);
    }
    return last as HeartbeatOutcome;
  }

  async release(grant: GrantRef): Promise<readonly ReleaseOutcome[]> {
    const wanted = grant.locks.map((lock) => ({ lock }));
    return this.#release({ wanted, agent: grant.agent, lockId: grant.lockId }, false);
  }

  /** Gives up a place in line. True if there was one. */
  async cancelWait({ locks, agent, lockId }: GrantRef): Promise<boolean> {
    const left = await Promise.all(
      locks.map((lock) => this.#leave(lock, agent, { lock_id: lockId, since_us: 0, word_us: 0, cycle: '' })),
    );
    return left.some((since) => since !== undefined);
  }

  /**
   * Takes a waiter out of the line as the victim of a deadlock; its next call is told the cycle. Undefined: it does not wait
   * there any more, or anew (`since` differs), so this deadlock is over.
   */
  abortWaiter(wait: AbortedWait): Promise<number | undefined> {
    const { lock, agent, lockId, since, cycle } = wait;
    const word_us = LEASE_CLASSES.agent.waiterMs * US;
    return this.#leave(lock, agent, { lock_id: lockId, since_us: since, word_us, cycle: JSON.stringify(cycle) });
  }

  async inspect(lock: LockRef): Promise<LockView> {
    return this.look(lock);
  }

  /** inspect(), with what only the sweeper wants to know. */
  async look(lock: LockRef): Promise<Seen> {
    const wanted = [{ lock }];
    const { reply } = await this.scripts.scripts.run(
      inspect,
      this.scripts.all(wanted, NOBODY),
      this.scripts.common(wanted, NOBODY),
    );
    return lockView(lock, reply[0] as string);
  }

  /** Locks that are held or waited for, a page at a time; in no order. */
  async list({ agent, type, cursor = '0', limit = PAGE }: ListRequest = {}): Promise<LockPage> {
    const { connection, keys } = this.scripts;
    const redis = connection.commands;
    const [next, found] =
      agent !== undefined
        ? await redis.sscan(keys.agentLocks(agent), cursor, 'COUNT', limit)
        : type !== undefined
          ? await redis.sscan(keys.resourceLocks(type), cursor, 'COUNT', limit)
          : await redis.zscan(keys.lockRegistry(), cursor, 'COUNT', limit);
    const step = agent === undefined && type === undefined ? 2 : 1;
    const lockKeys = found.filter((_, at) => at % step === 0);
    const refs = lockKeys.map((key) => this.scripts.lockOf(key)).filter((lock) => lock !== undefined);
    const views = await Promise.all(refs.map((lock) => this.look(lock)));
    // The indexes are supersets: only the lock itself says who holds it.
    const holds = (view: LockView) => view.holders.some((holder) => agent === undefined || holder.agent === agent);
    return { locks: views.filter(holds), cursor: next === '0' ? undefined : next };
  }

  /** Every lock that someone waits for, with holders and waiters in order: what the deadlock detector looks at. */
  async waitGraph(): Promise<readonly LockView[]> {
    const { connection, keys } = this.scripts;
    const waited = await connection.commands.zrange(keys.waitedLocks(), '0', '-1');
    const refs = waited.map((key) => this.scripts.lockOf(key)).filter((lock) => lock !== undefined);
    const views = await Promise.all(refs.map((lock) => this.look(lock)));
    return views.filter(({ waiters }) => waiters.some(({ alive }) => alive));
  }

  /** Which locks an agent may be waiting for: a hint, to be confirmed by inspect(). */
  async waitsFor(agent: string): Promise<readonly LockRef[]> {
    const { connection, keys } = this.scripts;
    const waited = await connection.commands.smembers(keys.waitFor(agent));
    return waited.map((key) => this.scripts.lockOf(key)).filter((lock) => lock !== undefined);
  }

  /** Says how much an agent may do at once (registers it) and whether it takes new work. Undefined: it is unknown. */
  async setCapacity(agent: string, change: CapacityChange): Promise<Capacity | undefined> {
    const lock: LockRef = { kind: 'agent', id: parseId('agent', agent) };
    const wanted = [{ lock }];
    const args = {
      ...this.scripts.common(wanted, agent),
      max_tasks: change.maxTasks ?? 0,
      status: change.status ?? '',
    };
    const [word] = await this.#run(wanted, () =>
      this.scripts.scripts.run(capacity, this.scripts.all(wanted, agent), args),
    );
    return word === 'SET' ? (await this.look(lock)).capacity : undefined;
  }

  async capacity(agent: string): Promise<Capacity | undefined> {
    return (await this.look({ kind: 'agent', id: parseId('agent', agent) })).capacity;
  }

  /** The agent is no more: its limit and its places go with it. */
  async removeCapacity(agent: string): Promise<boolean> {
    const { lock, leases, queue, waiters, fence } = this.scripts.lockKeys({
      kind: 'agent',
      id: parseId('agent', agent),
    });
    const { connection, keys } = this.scripts;
    await connection.commands.zrem(keys.lockRegistry(), lock);
    await connection.commands.zrem(keys.waitedLocks(), lock);
    return (await connection.commands.del(lock, leases as string, queue, waiters, fence)) > 0;
  }

  /** Locks whose leases or waiters are overdue by Redis time, as keys; `waiting` those of the silent waiters. */
  dueKeys(list: 'registry' | 'waiting', limit: number): Promise<readonly string[]> {
    const { scripts, keys } = this.scripts;
    return scripts.run(due, { list: list === 'registry' ? keys.lockRegistry() : keys.waitedLocks() }, { limit });
  }

  /** Ends what silent holders and waiters left at a lock. Safe to call at any time, by anyone, twice. */
  async reap(lock: LockRef): Promise<Reaped> {
    const seen = await this.look(lock);
    const agents = new Set([
      ...seen.holders.filter(({ state }) => state === 'expired').map(({ agent }) => agent),
      ...seen.waiters.filter(({ alive }) => !alive).map(({ agent }) => agent),
      ...(seen.vanished === undefined ? [] : [seen.vanished]),
    ]);
    let [expired, silent] = [0, 0];
    for (const agent of agents.size > 0 ? agents : [NOBODY]) {
      const ended = await this.#reap(lock, agent);
      expired += ended.expired;
      silent += ended.silent;
    }
    return { expired, silent };
  }

  /** The same for what one agent left there; nobody in particular: only the lock's own places are put right. */
  async reapFor(lock: LockRef, agent: string = NOBODY): Promise<void> {
    await this.#reap(lock, agent);
  }

  /** Takes out of the sweeper's lists what is no lock. */
  async dropDue(list: 'registry' | 'waiting', key: string): Promise<void> {
    const { connection, keys } = this.scripts;
    await connection.commands.zrem(list === 'registry' ? keys.lockRegistry() : keys.waitedLocks(), key);
  }

  async #take(asked: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    const keys = this.#keys(asked);
    const args = {
      ...this.scripts.common(asked.wanted, asked.agent),
      lock_id: asked.lockId,
      ...terms(request, limits),
    };
    for (let reaps = 0; ; reaps++) {
      const reply = await this.#run(asked.wanted, () => this.scripts.scripts.run(acquire, keys, args));
      const outcome = acquireOutcome(reply, asked);
      if (outcome.outcome !== 'overdue') return outcome;
      if (reaps >= MAX_REAPS) throw new Error(`${lockName(outcome.lock)} stays overdue`);
      for (const agent of outcome.agents) await this.#reap(outcome.lock, agent);
    }
  }

  async #takeInTurn(asked: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    const taken: Asked[] = [];
    const grants = [];
    let again = true;
    const { lease_us, wait } = terms(request, limits);
    const leaseMs = lease_us / US + LEASE_CLASSES[request.leaseClass ?? 'process'].graceMs;
    for (const part of this.#parts(asked)) {
      const lock = lockOf(part);
      await this.#indexes?.intend(lock, asked.agent, leaseMs, wait !== null);
      const ask = { ...request, queued: request.queued && asked.wanted.length === 1 };
      const outcome = await this.#take(part, ask, limits);
      if (outcome.outcome !== 'granted') {
        await this.#indexes?.ended(lock, asked.agent);
        if (outcome.outcome !== 'queued') await this.#indexes?.stoppedWaiting(lock, asked.agent);
        for (const done of taken.reverse()) await this.#release(done, true);
        return outcome;
      }
      await this.#indexes?.granted(lock, asked.agent, leaseMs, wait !== null);
      again &&= outcome.again;
      if (!outcome.again) taken.push(part);
      grants.push(...outcome.grants);
    }
    return { outcome: 'granted', lockId: asked.lockId, grants, again };
  }

  async #release(asked: Asked, forget: boolean): Promise<readonly ReleaseOutcome[]> {
    const outcomes: ReleaseOutcome[] = [];
    for (const part of this.#parts(asked)) {
      const args = { ...this.scripts.common(part.wanted, asked.agent), lock_id: asked.lockId, forget: Number(forget) };
      const reply = await this.#run(part.wanted, () => this.scripts.scripts.run(release, this.#keys(part), args));
      outcomes.push(...releaseOutcomes(reply, part));
      await this.#indexes?.ended(lockOf(part), asked.agent);
    }
    return outcomes;
  }

  async #leave(lock: LockRef, agent: string, how: LeaveArgs): Promise<number | undefined> {
    const wanted = [{ lock }];
    const args = { ...this.scripts.common(wanted, agent), ...how };
    const [word, since] = await this.#run(wanted, () =>
      this.scripts.scripts.run(leave, this.scripts.all(wanted, agent), args),
    );
    await this.#indexes?.stoppedWaiting(lock, agent);
    return word === 'LEFT' ? Number(since) : undefined;
  }

  async #reap(lock: LockRef, named: string): Promise<Reaped> {
    const wanted = [{ lock }];
    // A foreign client may have put anything there: who cannot have an index needs none cleaned.
    const agent = isId('agent', named) ? named : NOBODY;
    const patience_us = LEASE_CLASSES.process.waiterMs * US;
    const args = { ...this.scripts.common(wanted, named), patience_us };
    const [expired, silent, clean] = await this.#run(wanted, () =>
      this.scripts.scripts.run(reap, this.scripts.all(wanted, agent), args),
    );
    if (this.#indexes) {
      await this.#indexes.ended(lock, agent);
      await (clean === '1' ? this.#indexes.noLine(lock) : this.#indexes.line(lock, LEASE_CLASSES.process.waiterMs));
    }
    return { expired: Number(expired), silent: Number(silent) };
  }

  async #held(lock: LockRef, agent: string) {
    const { holders, at } = await this.look(lock);
    const live = holders.filter(({ state }) => state !== 'expired');
    const left = live.map(({ expiresAt }) => Date.parse(expiresAt) - Date.parse(at));
    return {
      byAgent: live.some((holder) => holder.agent === agent),
      forMs: left.length > 0 ? Math.max(0, Math.min(...left)) : undefined,
    };
  }

  #asked({ locks, agent, lockId = randomUUID() }: AcquireRequest): Asked {
    const wanted = locks.length > 1 ? [...locks].sort((a, b) => inLockOrder(a.lock, b.lock)) : locks;
    return { wanted, agent, lockId: lockIdSchema.parse(lockId) };
  }

  /** One script takes all on one server; in a cluster each lock is a call of its own. */
  #parts(asked: Asked): readonly Asked[] {
    return this.#indexes ? asked.wanted.map((each) => ({ ...asked, wanted: [each] })) : [asked];
  }

  #keys({ wanted, agent }: Asked) {
    return this.scripts.all(wanted, agent);
  }

  #run(wanted: readonly Wanted[], call: Parameters<typeof this.scripts.run<readonly string[]>>[1]) {
    return this.scripts.run((wanted[0] as Wanted).lock, call);
  }
}

export interface AbortedWait {
  readonly lock: LockRef;
  readonly agent: string;
  readonly lockId: string;
  readonly since: number;
  /** The evidence, for the victim. */
  readonly cycle: unknown;
}
export interface ListRequest {
  readonly agent?: string | undefined;
  readonly type?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}
export interface LockPage {
  readonly locks: readonly LockView[];
  readonly cursor: string | undefined;
}
export interface CapacityChange {
  readonly maxTasks?: number | undefined;
  readonly status?: CapacityStatus | undefined;
}
export interface Reaped {
  /** Grants that were over. */
  readonly expired: number;
  /** Waiters that fell silent. */
  readonly silent: number;
}

interface LeaveArgs {
  readonly lock_id: string;
  readonly since_us: number;
  readonly word_us: number;
  readonly cycle: string;
}

const lockOf = ({ wanted }: Asked): LockRef => (wanted[0] as Wanted).lock;

function terms(request: AcquireRequest, limits: LockLimits) {
  const { leaseClass = 'process', waitMs = 0, maxHoldMs = 0 } = request;
  const usual = leaseClass === 'process' ? limits.leaseMs : LEASE_CLASSES[leaseClass].leaseMs;
  return {
    purpose: request.purpose ?? '',
    lease_us: Math.min(Math.max(request.leaseMs ?? usual, 1), limits.maxLeaseMs) * US,
    lease_class: leaseClass,
    hold_us: maxHoldMs * US,
    wait: waitMs > 0 ? patience(request, waitMs, limits.depth) : null,
  };
}

const patience = (request: AcquireRequest, waitMs: number, depth: number) => ({
  us: waitMs * US,
  patience_us: LEASE_CLASSES[request.leaseClass ?? 'process'].waiterMs * US,
  depth,
  priority: request.priority ?? 0,
  queued: request.queued ?? false,
  since: request.since ?? 0,
});
