import { isId } from '../../redis/ids.ts';
import type { ClusterIndexes } from './cluster-indexes.ts';
import { LEASE_CLASSES, type LockRef } from './lock.ts';
import type { LockReader } from './lock-reader.ts';
import { type LockScripts, NOBODY } from './lock-scripts.ts';
import { due, nextDue, reap, schedule } from './scripts.ts';
import { US } from './terms.ts';

export interface Reaped {
  /** Grants that were over. */
  readonly expired: number;
  /** Waiters that fell silent. */
  readonly silent: number;
}

/** The sweeper's lists: of locks by the end of their leases, and by when their waiters may have fallen silent. */
export type DueList = 'registry' | 'waiting';

/** Ends what silent holders and waiters left behind. Each step may be made at any time, by anyone, twice. */
export class Reaper {
  readonly #scripts: LockScripts;
  readonly #reader: LockReader;
  readonly #indexes: ClusterIndexes | undefined;

  constructor(scripts: LockScripts, reader: LockReader, indexes: ClusterIndexes | undefined) {
    this.#scripts = scripts;
    this.#reader = reader;
    this.#indexes = indexes;
  }

  due(list: DueList, limit: number): Promise<readonly string[]> {
    return this.#scripts.scripts.run(due, { list: this.#key(list) }, { limit });
  }

  /** In how many seconds something may be due there; undefined if nobody can tell of anything. */
  next(list: DueList): Promise<number | undefined> {
    return this.#scripts.scripts.run(nextDue, { list: this.#key(list) }, {});
  }

  async drop(list: DueList, key: string): Promise<void> {
    await this.#scripts.connection.commands.zrem(this.#key(list), key);
  }

  async putOff(list: DueList, key: string, byMs: number): Promise<void> {
    const args = { lock: key, in_us: byMs * US, unless_there: 0 };
    await this.#scripts.scripts.run(schedule, { list: this.#key(list) }, args);
  }

  async reap(lock: LockRef): Promise<Reaped> {
    const { holders, waiters, vanished } = await this.#reader.look(lock);
    const agents = new Set([
      ...holders.filter(({ state }) => state === 'expired').map(({ agent }) => agent),
      ...waiters.filter(({ alive }) => !alive).map(({ agent }) => agent),
      ...vanished,
    ]);
    let [expired, silent] = [0, 0];
    for (const agent of agents.size > 0 ? agents : [NOBODY]) {
      const ended = await this.reapFor(lock, agent);
      expired += ended.expired;
      silent += ended.silent;
    }
    return { expired, silent };
  }

  /** What one agent left there. Nobody in particular: the lock's own places are put right. */
  async reapFor(lock: LockRef, agent: string): Promise<Reaped> {
    const wanted = [{ lock }];
    // A foreign client may have put anything there: who cannot have an index needs none cleaned.
    const owner = isId('agent', agent) ? agent : NOBODY;
    const args = { ...this.#scripts.common(wanted, agent), patience_us: LEASE_CLASSES.process.waiterMs * US };
    const call = () => this.#scripts.scripts.run(reap, this.#scripts.all(wanted), args);
    const [expired, silent, line] = await this.#scripts.run(lock, call);
    await this.#indexes?.ended(lock, owner);
    await this.#indexes?.lineIs(lock, line === '1');
    return { expired: Number(expired), silent: Number(silent) };
  }

  #key(list: DueList): string {
    const { keys } = this.#scripts;
    return list === 'registry' ? keys.lockRegistry() : keys.waitedLocks();
  }
}
