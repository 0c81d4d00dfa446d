import type { Explainer } from '../../hold.ts';
import { formatLock, parseLock } from './lock.ts';
import { explainView } from './lock-hold.ts';
import type { Locks } from './locks.ts';

const IS_LOCK = /^(task|resource|agent):/;

/** Why a lock is held; and what its holders wait for themselves, so that the chain can be followed. */
export const explainLocks =
  (locks: Locks): Explainer =>
  async (ref) => {
    if (!IS_LOCK.test(ref)) return undefined;
    const view = await locks.inspect(parseLock(ref));
    const holders = [...new Set(view.holders.map(({ agent }) => agent))];
    const waited = view.lock.kind === 'agent' ? [] : await Promise.all(holders.map((agent) => locks.waitsFor(agent)));
    return explainView(view, waited.flat().map(formatLock));
  };
