import { ReeveError } from '../../errors.ts';
import { IndexScrub } from './index-scrub.ts';
import type { Locks } from './locks.ts';

export interface Swept {
  /** Grants whose lease was over. */
  readonly expired: number;
  /** Waiters that fell silent. */
  readonly silent: number;
  /** Entries of indexes that no lock bears out. */
  readonly orphans: number;
  /** Locks at whose keys someone else put something of another kind: they are left alone for a while. */
  readonly foreign: number;
}

const BATCH = 500;
const AT_ONCE = 50;
const FOREIGN_MS = 60_000;
const NOTHING: Swept = { expired: 0, silent: 0, orphans: 0, foreign: 0 };

/**
 * Ends what nobody ends: leases that ran out, waiters that fell silent, entries that name locks which are not held. Costs
 * in proportion to what is overdue; the indexes are walked a little at a time beside it.
 */
export async function sweepOnce(locks: Locks, scrub: IndexScrub = new IndexScrub(locks)): Promise<Swept> {
  const holders = await sweepList(locks, 'registry');
  const waiters = await sweepList(locks, 'waiting');
  const orphans = await scrub.stretchOnce();
  return {
    expired: holders.expired + waiters.expired,
    silent: holders.silent + waiters.silent,
    orphans: holders.orphans + waiters.orphans + orphans,
    foreign: holders.foreign + waiters.foreign,
  };
}

async function sweepList(locks: Locks, list: 'registry' | 'waiting'): Promise<Swept> {
  const total = { expired: 0, silent: 0, orphans: 0, foreign: 0 };
  for (;;) {
    const due = await locks.dueKeys(list, BATCH);
    for (let at = 0; at < due.length; at += AT_ONCE) {
      const ended = await Promise.all(due.slice(at, at + AT_ONCE).map((key) => sweepKey(locks, list, key)));
      for (const { expired, silent, orphans, foreign } of ended) {
        total.expired += expired;
        total.silent += silent;
        total.orphans += orphans;
        total.foreign += foreign;
      }
    }
    if (due.length < BATCH) return total;
  }
}

async function sweepKey(locks: Locks, list: 'registry' | 'waiting', key: string): Promise<Swept> {
  const lock = locks.scripts.lockOf(key);
  if (!lock) {
    // No lock of ours goes by this name; left there it would be due for ever.
    await locks.dropDue(list, key);
    return { ...NOTHING, orphans: 1 };
  }
  try {
    return { ...NOTHING, ...(await locks.reap(lock)) };
  } catch (error) {
    if (!(error instanceof ReeveError && error.code === 'REDIS_KEY_FOREIGN')) throw error;
    // It would be the first that is due, again and again, and keep the sweeper from all others.
    await locks.putOffDue(list, key, FOREIGN_MS);
    return { ...NOTHING, foreign: 1 };
  }
}
