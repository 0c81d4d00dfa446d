import type { TaskId } from '../../redis/ids.ts';
import { type ExplainedKey, KEY_TABLE, type KeyName, type Keyspace, type KeyspaceOptions } from '../../redis/keys.ts';
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

/** What accompanies a lock has its name and an ending, the same for all kinds; only capacity has leases. */
export const COMPANIONS = {
  queue: ending('taskLockQueue', 'taskLock'),
  waiters: ending('taskLockWaiters', 'taskLock'),
  fence: ending('taskLockFence', 'taskLock'),
  channel: ending('taskLockChannel', 'taskLock'),
  leases: ending('agentCapacityLeases', 'agentCapacity'),
};

function ending(companion: KeyName, lock: KeyName): string {
  return KEY_TABLE[companion].pattern.slice(KEY_TABLE[lock].pattern.length);
}

export type LockSpeller = (lock: LockRef) => LockKeys;

/** Spells a task's lock; its id was checked when it became one, and need not be again with every call. */
export function taskLockSpeller(options: KeyspaceOptions): (id: TaskId) => string {
  const { pattern, cluster } = KEY_TABLE.taskLock;
  const [before, after] = (options.mode === 'cluster' ? cluster : pattern).split('<task>') as [string, string];
  return (id) => before + id + after;
}

/** Spells the keys of locks. Only the first is joined and checked by the key table: this runs on every call. */
export function lockSpeller(keys: Keyspace): LockSpeller {
  const spell = (lock: string) => ({
    lock,
    queue: lock + COMPANIONS.queue,
    waiters: lock + COMPANIONS.waiters,
    fence: lock + COMPANIONS.fence,
    channel: lock + COMPANIONS.channel,
  });
  return (lock) => {
    switch (lock.kind) {
      case 'task':
        return spell(keys.taskLock(lock.id));
      case 'resource':
        return { ...spell(keys.resourceLock(lock.type, lock.id)), typeIndex: keys.resourceLocks(lock.type) };
      case 'agent': {
        const own = keys.agentCapacity(lock.id);
        return { ...spell(own), leases: own + COMPANIONS.leases };
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
