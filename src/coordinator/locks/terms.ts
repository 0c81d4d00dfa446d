import { LEASE_CLASSES, type LeaseClass } from './lock.ts';
import type { Wanted } from './lock-scripts.ts';

/** What is allowed; asked on each call, since the live settings may change. */
export interface LockLimits {
  /** Lease of the process class without a wish. */
  readonly leaseMs: number;
  readonly maxLeaseMs: number;
  /** Longest line before a lock; beyond it: full. */
  readonly depth: number;
}

export interface AcquireRequest {
  /** One, or several, all or nothing. */
  readonly locks: readonly Wanted[];
  readonly agent: string;
  /** Asking again with the same one is the same request. Default: a new one. */
  readonly lockId?: string | undefined;
  readonly purpose?: string | undefined;
  readonly leaseClass?: LeaseClass | undefined;
  readonly leaseMs?: number | undefined;
  /** No heartbeat extends beyond this long after the grant. */
  readonly maxHoldMs?: number | undefined;
  /** How long to stay in line; 0 does not join it. */
  readonly waitMs?: number | undefined;
  /** For show, and to choose among equal victims of a deadlock; the order is by arrival. */
  readonly priority?: number | undefined;
  /** The caller was told `queued` before: answer `evicted` if its place was given up. */
  readonly queued?: boolean | undefined;
  /** The age of a wait that was broken off by a deadlock, so that the retry keeps it. */
  readonly since?: number | undefined;
}

export const US = 1000;

/** A request as acquire.lua takes it, within what is allowed. */
export type AcquireTerms = ReturnType<typeof acquireTerms>;
export function acquireTerms(request: AcquireRequest, limits: LockLimits) {
  const { leaseClass = 'process', waitMs = 0, maxHoldMs = 0 } = request;
  return {
    purpose: request.purpose ?? '',
    lease_us: leaseUs(request.leaseMs, leaseClass, limits),
    lease_class: leaseClass,
    hold_us: maxHoldMs * US,
    wait: waitMs > 0 ? waitTerms(request, waitMs, limits.depth) : '',
  };
}

/** Without a wish, each class has its own lease; the caller of a beat need not know which it is. */
export const heartbeatTerms = (extendMs: number | undefined, limits: LockLimits) => ({
  extend_us: leaseUs(extendMs, 'process', limits),
  extend_agent_us: leaseUs(extendMs, 'agent', limits),
});

/** How long a silent waiter counts as alive. */
export const patienceMs = ({ leaseClass = 'process' }: AcquireRequest): number => LEASE_CLASSES[leaseClass].waiterMs;

function waitTerms(request: AcquireRequest, waitMs: number, depth: number): string {
  const { queued, priority = 0, since = 0 } = request;
  return `${queued ? 'again' : 'first'}|${waitMs * US}|${patienceMs(request) * US}|${depth}|${priority}|${since}`;
}

function leaseUs(wishedMs: number | undefined, leaseClass: LeaseClass, { leaseMs, maxLeaseMs }: LockLimits): number {
  const ms = wishedMs ?? (leaseClass === 'process' ? leaseMs : LEASE_CLASSES[leaseClass].leaseMs);
  // What is no length of time at all is the shortest.
  return (ms >= 1 ? Math.min(ms, maxLeaseMs) : 1) * US;
}
