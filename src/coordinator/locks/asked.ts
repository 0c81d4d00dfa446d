import { randomUUID } from 'node:crypto';
import { parseId } from '../../redis/ids.ts';
import { inLockOrder, LOCK_ID, type LockRef, lockIdSchema, lockName } from './lock.ts';
import type { LockScripts, Wanted } from './lock-scripts.ts';
import type { TaskLock } from './lock-turns.ts';
import type { Asked } from './replies.ts';
import type { AcquireRequest, AcquireTerms } from './terms.ts';

/** Who holds what, or waits for it, by which request. */
export interface GrantRef {
  readonly locks: readonly LockRef[];
  readonly agent: string;
  readonly lockId: string;
}

/** If it is one task's own lock, on one server. */
export function oneTask({ wanted: [one, another] }: Asked, { isCluster }: LockScripts): TaskLock | undefined {
  return !isCluster && !another && one?.lock.kind === 'task' && one.mode !== 'shared' ? one.lock : undefined;
}

/** If it is nothing that only acquire.lua knows. */
export const usualLock = (asked: Asked, { lease_class, hold_us }: AcquireTerms, scripts: LockScripts) =>
  lease_class === 'process' && hold_us === 0 ? oneTask(asked, scripts) : undefined;

export const lockOf = ({ wanted }: Asked): LockRef => (wanted[0] as Wanted).lock;
export const askedBy = ({ locks, agent, lockId }: GrantRef): Asked => ({
  wanted: locks.map((lock) => ({ lock })),
  agent,
  lockId,
});

export function askedFor({ locks, agent, lockId = randomUUID() }: AcquireRequest): Asked {
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

/** One script does all on one server; in a cluster each lock is a call of its own. */
export const partsOf = (asked: Asked, { isCluster }: LockScripts): readonly Asked[] =>
  isCluster ? asked.wanted.map((each) => ({ ...asked, wanted: [each] })) : [asked];

export const argsOf = ({ wanted, agent, lockId }: Asked, scripts: LockScripts) => ({
  ...scripts.common(wanted, agent),
  lock_id: lockId,
});
