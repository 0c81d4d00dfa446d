import { z } from 'zod';
import { ReeveError } from '../../errors.ts';
import {
  type AgentId,
  decodeId,
  encodeId,
  idSchema,
  isId,
  parseId,
  type ResourceId,
  type ResourceType,
  type TaskId,
} from '../../redis/ids.ts';

/** What can be locked. A capacity lock is one place among those an agent has. */
export type LockRef =
  | { readonly kind: 'task'; readonly id: TaskId }
  | { readonly kind: 'resource'; readonly type: ResourceType; readonly id: ResourceId }
  | { readonly kind: 'agent'; readonly id: AgentId };

export const LOCK_MODES = ['exclusive', 'shared'] as const;
export type LockMode = (typeof LOCK_MODES)[number];

/**
 * How long a silent holder keeps a lock. A process beats by itself; a language model, whose single turn outlasts any
 * short lease, is given long ones, and a grace in which nobody else gets the lock and its own beat revives it.
 */
export const LEASE_CLASSES = {
  process: { leaseMs: 30_000, graceMs: 0, waiterMs: 10_000 },
  agent: { leaseMs: 900_000, graceMs: 120_000, waiterMs: 60_000 },
} as const;
export type LeaseClass = keyof typeof LEASE_CLASSES;
export const LEASE_CLASS_NAMES = Object.keys(LEASE_CLASSES) as [LeaseClass, ...LeaseClass[]];

/** Reads `task:ID`, `resource:TYPE:ID` or `agent:ID`. The id of a resource may be any text, or its encoded form. */
export function parseLock(text: string): LockRef {
  const [kind, ...rest] = text.split(':');
  if (kind === 'task' && rest.length === 1) return { kind, id: parseId('task', rest[0]) };
  if (kind === 'agent' && rest.length === 1) return { kind, id: parseId('agent', rest[0]) };
  if (kind === 'resource' && rest.length >= 2) return resourceLock(rest[0] as string, rest.slice(1).join(':'));
  throw new ReeveError('INVALID_LOCK', { lock: JSON.stringify(text.slice(0, 80)) });
}

export const resourceLock = (type: string, id: string): LockRef => ({
  kind: 'resource',
  type: parseId('resourceType', type),
  id: isId('resource', id) ? id : encodeId('resource', id),
});

/** The text that parseLock() reads; the id of a resource as people write it, where that reads back as the same. */
export function formatLock(lock: LockRef): string {
  if (lock.kind !== 'resource') return `${lock.kind}:${lock.id}`;
  const plain = decodeId(lock.id);
  const readsBack = !isId('resource', plain) || plain === lock.id;
  return `resource:${lock.type}:${readsBack ? plain : lock.id}`;
}

/** One spelling per lock, with encoded ids: what sorts, compares and stands in events. */
export const lockName = (lock: LockRef): string =>
  lock.kind === 'resource' ? `resource:${lock.type}:${lock.id}` : `${lock.kind}:${lock.id}`;

/**
 * Capacity first, then resources, tasks last; each by name. Whoever takes several takes them in this order, and what
 * is dearest to hold in vain is taken last.
 */
export function inLockOrder(a: LockRef, b: LockRef): number {
  const [first, second] = [lockName(a), lockName(b)];
  return RANK[a.kind] - RANK[b.kind] || (first < second ? -1 : Number(first > second));
}
const RANK = { agent: 0, resource: 1, task: 2 } as const;

/** For operations: takes the text, gives the lock. */
export const lockSchema = z.string().transform((text, context): LockRef => {
  try {
    return parseLock(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
    return z.NEVER;
  }
});

/** For operations, too. */
export const agentSchema = idSchema('agent');
export const resourceTypeSchema = idSchema('resourceType');

/** One grant has one id, chosen by whoever asks, so that asking again after a lost reply is the same request. */
export const LOCK_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
export const lockIdSchema = z
  .string()
  .regex(LOCK_ID, 'letters, digits, ".", "_" and "-", at most 128')
  .describe('Names this request and its grant. Give the same one again to ask again; never reuse it after release.');

/** A lock that someone has. The token rises with each grant of the lock; writes made under it carry and check it. */
export interface Grant {
  readonly lock: LockRef;
  readonly lockId: string;
  readonly agent: string;
  readonly mode: LockMode;
  readonly token: number;
  readonly acquiredAt: string;
  readonly expiresAt: string;
}

/** A holder, for people and for the wait-for graph. */
export interface Holder {
  readonly agent: string;
  readonly lockId: string;
  readonly mode: LockMode;
  readonly token: number;
  readonly acquiredAt: string;
  readonly expiresAt: string;
  readonly purpose: string;
  readonly leaseClass: LeaseClass;
  readonly heartbeats: number;
  /** expired: the lease is over. grace: over, but nobody else may have it yet. */
  readonly state: 'live' | 'grace' | 'expired';
}

export interface Waiter {
  readonly agent: string;
  readonly lockId: string;
  readonly mode: LockMode;
  readonly priority: number;
  readonly requestedAt: string;
  readonly maxWaitSeconds: number;
  /** Place in time in µs: who is older goes first. Kept by a retry. */
  readonly since: number;
  readonly alive: boolean;
}

/** Everything about one lock at one moment. */
export interface LockView {
  readonly lock: LockRef;
  readonly name: string;
  readonly mode: LockMode | undefined;
  readonly holders: readonly Holder[];
  readonly waiters: readonly Waiter[];
  /** Highest token ever given. */
  readonly token: number;
  /** What became of the last grant. */
  readonly state: 'held' | 'released' | 'expired' | 'free';
  readonly averageHoldMs: number | undefined;
  /** Redis time of the look. */
  readonly at: string;
  readonly capacity?: Capacity;
}

export const CAPACITY_STATUSES = ['active', 'draining', 'offline'] as const;
export type CapacityStatus = (typeof CAPACITY_STATUSES)[number];

export interface Capacity {
  readonly maxTasks: number;
  readonly activeTasks: number;
  readonly queuedTasks: number;
  readonly status: CapacityStatus;
  readonly lastHeartbeat: string;
}

/** Why someone does not get a lock now. */
export interface Blocked {
  readonly lock: LockRef;
  readonly holders: readonly BlockingHolder[];
  readonly waiting: number;
  /** When the last of the leases in the way ends, if nobody renews it. */
  readonly freeInMs: number;
}
export interface BlockingHolder {
  readonly agent: string;
  readonly purpose: string;
  readonly acquiredAt: string;
  readonly expiresAt: string;
}

export type AcquireOutcome =
  | { readonly outcome: 'granted'; readonly lockId: string; readonly grants: readonly Grant[]; readonly again: boolean }
  | {
      readonly outcome: 'queued';
      readonly lockId: string;
      /** 1 is next. */
      readonly position: number;
      readonly expectedWaitMs: number | undefined;
      readonly since: number;
      readonly blocked: Blocked;
    }
  | { readonly outcome: 'held'; readonly lockId: string; readonly blocked: Blocked }
  | { readonly outcome: 'full'; readonly lock: LockRef; readonly depth: number }
  | { readonly outcome: 'refused'; readonly lock: LockRef; readonly why: RefusedWhy }
  /** This lock_id had its grant, and it is over: released, expired or taken away. */
  | { readonly outcome: 'spent'; readonly lock: LockRef; readonly lockId: string }
  /** Did not ask for so long that its place was given up. */
  | { readonly outcome: 'evicted'; readonly lockId: string }
  | { readonly outcome: 'deadlock'; readonly lock: LockRef; readonly cycle: unknown; readonly since: number }
  | { readonly outcome: 'limited'; readonly retryAfterMs: number };
export type RefusedWhy = 'foreign' | 'upgrade' | 'unregistered' | 'draining' | 'offline';

export type HeartbeatOutcome =
  | { readonly outcome: 'extended'; readonly expiresAt: string; readonly heartbeats: number }
  | { readonly outcome: 'lost'; readonly lock: LockRef };

export type ReleaseOutcome = { readonly outcome: 'released' | 'already' | 'lost'; readonly lock: LockRef };
