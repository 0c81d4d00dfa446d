import { LEASE_CLASSES, type LockRef } from './lock.ts';
import type { LockReader } from './lock-reader.ts';
import type { LockScripts } from './lock-scripts.ts';
import { schedule } from './scripts.ts';

/**
 * In a cluster, what is derived from locks lives in other slots than they. Written before a grant and after a release,
 * so that a crash between leaves an entry too many, for the sweeper, and never one too few. Written once more after a
 * grant, and looked at once more after a removal, since another call about the same lock may have run between.
 */
export class ClusterIndexes {
  readonly #locks: LockScripts;
  readonly #reader: LockReader;

  constructor(locks: LockScripts, reader: LockReader) {
    this.#locks = locks;
    this.#reader = reader;
  }

  async intend(lock: LockRef, agent: string, leaseMs: number, patienceMs: number | undefined): Promise<void> {
    await Promise.all([
      this.#note('registry', lock, leaseMs, true),
      this.#enter(lock, agent),
      ...(patienceMs === undefined ? [] : [this.#await(lock, agent, patienceMs)]),
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
    const held = await this.#reader.held(lock, agent);
    if (held.byAgent) await this.#enter(lock, agent);
    if (held.forMs !== undefined) {
      await this.#note('registry', lock, held.forMs, false);
      return;
    }
    if (typeIndex) await redis.srem(typeIndex, key);
    await redis.zrem(keys.lockRegistry(), key);
    const since = await this.#reader.held(lock, agent);
    if (since.forMs !== undefined) await this.granted(lock, agent, since.forMs, false);
  }

  async stoppedWaiting(lock: LockRef, agent: string): Promise<void> {
    const { connection, keys } = this.#locks;
    await connection.commands.srem(keys.waitFor(agent), this.#locks.lockKeys(lock).lock);
  }

  /** Whoever still stands in line may fall silent, too: the sweeper looks again then. */
  async lineIs(lock: LockRef, isThere: boolean): Promise<void> {
    const { connection, keys } = this.#locks;
    if (isThere) await this.#note('waiting', lock, LEASE_CLASSES.process.waiterMs, false);
    else await connection.commands.zrem(keys.waitedLocks(), this.#locks.lockKeys(lock).lock);
  }

  async #await(lock: LockRef, agent: string, inMs: number): Promise<void> {
    const { connection, keys } = this.#locks;
    await connection.commands.sadd(keys.waitFor(agent), this.#locks.lockKeys(lock).lock);
    await connection.commands.expire(keys.waitFor(agent), WAITFOR_SECONDS);
    await this.#note('waiting', lock, inMs, true);
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

const WAITFOR_SECONDS = 300;
