import { type Clock, jittered } from '../../clock.ts';
import { reason } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { every, type Service } from '../../service.ts';
import { IndexScrub } from './index-scrub.ts';
import type { Locks } from './locks.ts';

export interface SweeperOptions {
  readonly locks: Locks;
  readonly clock: Clock;
  readonly log: Logger;
  readonly everyMs?: number;
  /** Runs the work in one daemon at a time; undefined: another one does it. */
  readonly onlyOne?: <T>(work: () => Promise<T>) => Promise<T | undefined>;
}

export interface Swept {
  /** Grants whose lease was over. */
  readonly expired: number;
  /** Waiters that fell silent. */
  readonly silent: number;
  /** Entries of indexes that no lock bears out. */
  readonly orphans: number;
}

const EVERY_MS = 1_000;
const BATCH = 500;
const AT_ONCE = 50;

/** Ends what nobody ends: leases that ran out, waiters that fell silent, entries that name locks which are not held. */
export const sweeper = ({
  locks,
  clock,
  log,
  everyMs = EVERY_MS,
  onlyOne = (work) => work(),
}: SweeperOptions): Service => {
  const scrub = new IndexScrub(locks);
  return every('lock sweeper', {
    clock,
    pauseMs: () => jittered(everyMs),
    tick: async () => {
      const swept = await onlyOne(() => sweepOnce(locks, scrub));
      if (swept && swept.expired + swept.silent + swept.orphans > 0) log.info('locks swept', { ...swept });
    },
    onError: (error) => log.warn('sweeping locks failed', { problem: reason(error) }),
  });
};

/** Costs in proportion to what is overdue; the indexes are walked a little at a time beside it. */
export async function sweepOnce(locks: Locks, scrub: IndexScrub = new IndexScrub(locks)): Promise<Swept> {
  const holders = await sweepList(locks, 'registry');
  const waiters = await sweepList(locks, 'waiting');
  const { orphans } = await scrub.pageOnce();
  return {
    expired: holders.expired + waiters.expired,
    silent: holders.silent + waiters.silent,
    orphans: holders.orphans + waiters.orphans + orphans,
  };
}

async function sweepList(locks: Locks, list: 'registry' | 'waiting'): Promise<Swept> {
  const total = { expired: 0, silent: 0, orphans: 0 };
  for (;;) {
    const due = await locks.dueKeys(list, BATCH);
    for (let at = 0; at < due.length; at += AT_ONCE) {
      const ended = await Promise.all(due.slice(at, at + AT_ONCE).map((key) => sweepKey(locks, list, key)));
      for (const { expired, silent, orphans } of ended) {
        total.expired += expired;
        total.silent += silent;
        total.orphans += orphans;
      }
    }
    if (due.length < BATCH) return total;
  }
}

async function sweepKey(locks: Locks, list: 'registry' | 'waiting', key: string): Promise<Swept> {
  const lock = locks.scripts.lockOf(key);
  if (lock) return { ...(await locks.reap(lock)), orphans: 0 };
  // No lock of ours goes by this name; left there it would be due for ever.
  await locks.dropDue(list, key);
  return { expired: 0, silent: 0, orphans: 1 };
}
