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

export function lockKeys(keys: Keyspace, lock: LockRef): LockKeys {
  switch (lock.kind) {
    case 'task':
      return {
        lock: keys.taskLock(lock.id),
        queue: keys.taskLockQueue(lock.id),
        waiters: keys.taskLockWaiters(lock.id),
        fence: keys.taskLockFence(lock.id),
        channel: keys.taskLockChannel(lock.id),
      };
    case 'resource':
      return {
        lock: keys.resourceLock(lock.type, lock.id),
        queue: keys.resourceLockQueue(lock.type, lock.id),
        waiters: keys.resourceLockWaiters(lock.type, lock.id),
        fence: keys.resourceLockFence(lock.type, lock.id),
        channel: keys.resourceLockChannel(lock.type, lock.id),
        typeIndex: keys.resourceLocks(lock.type),
      };
    case 'agent':
      return {
        lock: keys.agentCapacity(lock.id),
        queue: keys.agentCapacityQueue(lock.id),
        waiters: keys.agentCapacityWaiters(lock.id),
        fence: keys.agentCapacityFence(lock.id),
        channel: keys.agentCapacityChannel(lock.id),
        leases: keys.agentCapacityLeases(lock.id),
      };
  }
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
