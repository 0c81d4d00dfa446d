import type { ExplainedKey, Keyspace } from '../../redis/keys.ts';
import { type LockMode, type LockRef, parseLock, resourceLock } from './lock.ts';

/** The keys of one lock. All but the last live in one Cluster slot. */
export interface LockKeys {
  readonly lock: string;
  readonly queue: string;
  readonly waiters: string;
  readonly fence: string;
  readonly channel: string;
  /** Capacity only. */
  readonly leases?: string;
  /** Resources only: the index of their type. */
  readonly typeIndex?: string;
}

export type LockSpeller = (lock: LockRef) => LockKeys;

/**
 * Spells the keys of locks. The companions of a lock are its own name and an ending, which the key table is asked for once:
 * checking and joining the id anew for each of them is most of what a call would cost here.
 */
export function lockSpeller(keys: Keyspace): LockSpeller {
  const PROBE = 'x';
  const ending = (whole: string, own: string) => whole.slice(own.length);
  const task = keys.taskLock(PROBE);
  const ofTask = {
    queue: ending(keys.taskLockQueue(PROBE), task),
    waiters: ending(keys.taskLockWaiters(PROBE), task),
    fence: ending(keys.taskLockFence(PROBE), task),
    channel: ending(keys.taskLockChannel(PROBE), task),
  };
  const resource = keys.resourceLock(PROBE, PROBE);
  const ofResource = {
    queue: ending(keys.resourceLockQueue(PROBE, PROBE), resource),
    waiters: ending(keys.resourceLockWaiters(PROBE, PROBE), resource),
    fence: ending(keys.resourceLockFence(PROBE, PROBE), resource),
    channel: ending(keys.resourceLockChannel(PROBE, PROBE), resource),
  };
  const agent = keys.agentCapacity(PROBE);
  const ofAgent = {
    queue: ending(keys.agentCapacityQueue(PROBE), agent),
    waiters: ending(keys.agentCapacityWaiters(PROBE), agent),
    fence: ending(keys.agentCapacityFence(PROBE), agent),
    channel: ending(keys.agentCapacityChannel(PROBE), agent),
    leases: ending(keys.agentCapacityLeases(PROBE), agent),
  };
  const spell = (lock: string, { queue, waiters, fence, channel }: typeof ofTask) => ({
    lock,
    queue: lock + queue,
    waiters: lock + waiters,
    fence: lock + fence,
    channel: lock + channel,
  });
  return (lock) => {
    switch (lock.kind) {
      case 'task':
        return spell(keys.taskLock(lock.id), ofTask);
      case 'resource':
        return {
          ...spell(keys.resourceLock(lock.type, lock.id), ofResource),
          typeIndex: keys.resourceLocks(lock.type),
        };
      case 'agent': {
        const own = keys.agentCapacity(lock.id);
        return { ...spell(own, ofAgent), leases: own + ofAgent.leases };
      }
    }
  };
}

/** Which lock a key of the registry is; undefined for what nobody of us wrote there. */
export function lockOfKey(explained: ExplainedKey | undefined): LockRef | undefined {
  if (explained?.name === 'taskLock') return parseLock(`task:${explained.parts.task}`);
  if (explained?.name === 'agentCapacity') return parseLock(`agent:${explained.parts.agent}`);
  if (explained?.name !== 'resourceLock') return undefined;
  return resourceLock(explained.parts.resourceType as string, explained.parts.resource as string);
}

const KIND = { task: 't', resource: 'r', agent: 'a' } as const;
const MODE = { exclusive: 'x', shared: 's' } as const;

/** Kind and mode of a lock as the scripts take them. */
export const shapeOf = (lock: LockRef, mode: LockMode): string => KIND[lock.kind] + MODE[mode];
