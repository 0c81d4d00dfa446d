import type { LockRef } from './lock.ts';
import type { LockScripts } from './lock-scripts.ts';
import { schedule } from './scripts.ts';

/**
 * In a cluster, what is derived from locks lives in other slots than they. Written before a grant and after a release,
 * so that a crash between leaves an entry too many, for the sweeper, and never one too few. Written once more after a
 * grant, and looked at once more after a removal, since another call about the same lock may have run between.
 */
export class ClusterIndexes {
  readonly #locks: LockScripts;
  readonly #holds: (lock: LockRef, agent: string) => Promise<Held>;

  constructor(locks: LockScripts, holds: (lock: LockRef, agent: string) => Promise<Held>) {
    this.#locks = locks;
    this.#holds = holds;
  }

  async intend(lock: LockRef, agent: string, leaseMs: number, waits: boolean): Promise<void> {
    await Promise.all([
      this.#note('registry', lock, leaseMs, true),
      this.#enter(lock, agent),
      ...(waits ? [this.#await(lock, agent, leaseMs)] : []),
    ]);
  }

  async granted(lock: LockRef, agent: string, leaseMs: number, waited: boolean): Promise<void> {
    await Promise.all([
      this.#note('registry', lock, leaseMs, false),
      this.#enter(lock, agent),
      ...(waited ? [this.stoppedWaiting(lock, agent)] : []),
    ]);
  }

  renewed(lock: LockRef, leaseMs: number): Promise<unknown> {
    return this.#note('registry', lock, leaseMs, false);
  }

  /** After a release, an expiry, or an intent that came to nothing. */
  async ended(lock: LockRef, agent: string): Promise<void> {
    const { connection, keys } = this.#locks;
    const redis = connection.commands;
    const { lock: key, typeIndex } = this.#locks.lockKeys(lock);
    await redis.srem(keys.agentLocks(agent), key);
    const held = await this.#holds(lock, agent);
    if (held.byAgent) await this.#enter(lock, agent);
    if (held.forMs !== undefined) {
      await this.#note('registry', lock, held.forMs, false);
      return;
    }
    if (typeIndex) await redis.srem(typeIndex, key);
    await redis.zrem(keys.lockRegistry(), key);
    const since = await this.#holds(lock, agent);
    if (since.forMs !== undefined) await this.granted(lock, agent, since.forMs, false);
  }

  async stoppedWaiting(lock: LockRef, agent: string): Promise<void> {
    const { connection, keys } = this.#locks;
    await connection.commands.srem(keys.waitFor(agent), this.#locks.lockKeys(lock).lock);
  }

  async noLine(lock: LockRef): Promise<void> {
    const { connection, keys } = this.#locks;
    await connection.commands.zrem(keys.waitedLocks(), this.#locks.lockKeys(lock).lock);
  }

  /** Somebody still waits: look again in a while. */
  async line(lock: LockRef, inMs: number): Promise<void> {
    await this.#note('waiting', lock, inMs, false);
  }

  async #await(lock: LockRef, agent: string, inMs: number): Promise<void> {
    const { connection, keys } = this.#locks;
    await connection.commands.sadd(keys.waitFor(agent), this.#locks.lockKeys(lock).lock);
    await connection.commands.expire(keys.waitFor(agent), WAITFOR_SECONDS);
    await this.#note('waiting', lock, inMs, false);
  }

  async #enter(lock: LockRef, agent: string): Promise<void> {
    const { connection, keys } = this.#locks;
    if (lock.kind === 'agent') return;
    const { lock: key, typeIndex } = this.#locks.lockKeys(lock);
    await Promise.all([
      connection.commands.sadd(keys.agentLocks(agent), key),
      typeIndex && connection.commands.sadd(typeIndex, key),
    ]);
  }

  #note(list: 'registry' | 'waiting', lock: LockRef, inMs: number, unlessThere: boolean): Promise<unknown> {
    const { scripts, keys } = this.#locks;
    const key = list === 'registry' ? keys.lockRegistry() : keys.waitedLocks();
    const args = { lock: this.#locks.lockKeys(lock).lock, in_us: inMs * 1000, unless_there: Number(unlessThere) };
    return scripts.run(schedule, { list: key }, args);
  }
}

interface Held {
  readonly byAgent: boolean;
  /** Until the first of the leases ends; undefined if nobody holds it. */
  readonly forMs: number | undefined;
}

const WAITFOR_SECONDS = 300;
