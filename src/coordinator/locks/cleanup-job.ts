import type { Logger } from '../../log.ts';
import { IndexScrub } from './index-scrub.ts';
import type { Locks } from './locks.ts';
import { sweepOnce } from './sweeper.ts';

export interface CleanupOptions {
  readonly locks: Locks;
  readonly log: Logger;
}

/** The job lock_cleanup: all that is overdue; or, with a target, the lock whose key that is. */
export function lockCleanup({ locks, log }: CleanupOptions) {
  const scrub = new IndexScrub(locks);
  return async ({ target }: { readonly target?: string | undefined }): Promise<void> => {
    const lock = target === undefined ? undefined : locks.scripts.lockOf(target);
    if (target !== undefined && !lock) return;
    const swept = lock ? { ...(await locks.reap(lock)), orphans: 0, foreign: 0 } : await sweepOnce(locks, scrub);
    if (swept.expired + swept.silent + swept.orphans > 0) log.info('locks swept', { ...swept });
    if (swept.foreign > 0) log.warn('locks left alone: their keys hold what reeve did not write', { ...swept });
  };
}
