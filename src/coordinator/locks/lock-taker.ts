import { ReeveError } from '../../errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { argsOf, lockOf, partsOf, usualLock } from './asked.ts';
import type { ClusterIndexes } from './cluster-indexes.ts';
import { type CopiesWanted, copiesOf } from './copies.ts';
import { type AcquireOutcome, formatLock, type Grant, LEASE_CLASSES, lockName } from './lock.ts';
import type { LockReturns } from './lock-returns.ts';
import type { LockScripts } from './lock-scripts.ts';
import type { LockTurns, TaskLock } from './lock-turns.ts';
import type { Reaper } from './reaper.ts';
import { type Asked, acquireOutcome } from './replies.ts';
import { acquire } from './scripts.ts';
import { type AcquireRequest, type AcquireTerms, acquireTerms, type LockLimits, patienceMs, US } from './terms.ts';

/** More than one is rare; a lock that is overdue again and again would be a fault of ours. */
const MAX_REAPS = 20;

export interface LockTakerOptions {
  readonly scripts: LockScripts;
  readonly turns: LockTurns;
  readonly returns: LockReturns;
  readonly reaper: Reaper;
  readonly indexes: ClusterIndexes | undefined;
  readonly copies: CopiesWanted;
}

/** Takes locks: in one step on one server, one by one in a cluster, and only with copies where those are wanted. */
export class LockTaker {
  readonly #scripts: LockScripts;
  readonly #turns: LockTurns;
  readonly #returns: LockReturns;
  readonly #reaper: Reaper;
  readonly #indexes: ClusterIndexes | undefined;
  readonly #copies: CopiesWanted;

  constructor({ scripts, turns, returns, reaper, indexes, copies }: LockTakerOptions) {
    this.#scripts = scripts;
    this.#turns = turns;
    this.#returns = returns;
    this.#reaper = reaper;
    this.#indexes = indexes;
    this.#copies = copies;
  }

  take(asked: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    return this.#indexes ? this.#takeInTurn(asked, request, limits) : this.#take(asked, request, limits);
  }

  #take(asked: Asked, request: AcquireRequest, limits: LockLimits): Promise<AcquireOutcome> {
    const terms = acquireTerms(request, limits);
    if (this.#copies.replicas > 0) return this.#takeCopied(asked, (on) => this.#takeAlone(asked, terms, on));
    // Whoever would wait goes by itself: those who join a line must come to it in the order in which they asked.
    const lock = terms.wait === '' ? usualLock(asked, terms, this.#scripts) : undefined;
    return lock ? this.#takeUsual(asked, lock, terms) : this.#takeAlone(asked, terms);
  }

  /** A grant that a failover would undo is none: it is given back. One had before stays, whoever asks for it again. */
  async #takeCopied(asked: Asked, take: (on: RedisClient) => Promise<AcquireOutcome>): Promise<AcquireOutcome> {
    const { replicas, withinMs } = this.#copies;
    const { lock } = this.#scripts.lockKeys(lockOf(asked));
    const { outcome, copies } = await this.#scripts.connection.exclusive(async (client) => {
      const taken = await take(client);
      const isGranted = taken.outcome === 'granted';
      return { outcome: taken, copies: isGranted ? await copiesOf(client, lock, this.#copies) : replicas };
    });
    if (copies >= replicas) return outcome;
    // If it cannot be given back, its lease ends it.
    if (outcome.outcome === 'granted' && !outcome.again) await this.#returns.release(asked, true).catch(() => {});
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
    const keys = this.#scripts.all(asked.wanted);
    const args = { ...argsOf(asked, this.#scripts), ...terms };
    for (let reaps = 0; ; reaps++) {
      const reply = await this.#scripts.run(lockOf(asked), () => this.#scripts.scripts.run(acquire, keys, args, on));
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
      for (const done of taken.reverse()) await this.#returns.release(done, true);
    };
    for (const part of partsOf(asked, this.#scripts)) {
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
    const redis = this.#scripts.connection.commands;
    const waits = await Promise.all(wanted.map(({ lock }) => redis.hget(this.#scripts.lockKeys(lock).waiters, lockId)));
    const ages = waits.map((text) => Number(text?.split('|')[1])).filter((age) => age > 0);
    const oldest = Math.min(...ages, known);
    return Number.isFinite(oldest) ? oldest : undefined;
  }
}
