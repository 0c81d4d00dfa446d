import type { LeaseClass } from '../locks/lock.ts';
import type { Task } from './task.ts';

/** What an agent has while it works on a task: the task's lock. */
export interface Lease {
  readonly lock_id: string;
  readonly fencing_token: string;
  readonly agent_id: string;
  readonly acquired_at: string;
  readonly expires_at: string;
  readonly lease_class: LeaseClass;
  readonly attempt: number;
}

/** Names a lease. Whoever has only its own name may leave the rest out. */
export interface LeaseRef {
  readonly task: string;
  readonly agent: string;
  readonly lockId?: string | undefined;
  readonly token?: string | undefined;
}

export type ClaimOutcome =
  | {
      readonly outcome: 'claimed';
      readonly task: Task;
      readonly lease: Lease;
      /** The agent had it already. */
      readonly again: boolean;
    }
  | { readonly outcome: 'none'; readonly ready: number }
  | { readonly outcome: 'full' }
  | { readonly outcome: 'refused'; readonly status: string }
  | { readonly outcome: 'paused'; readonly pause: Pause }
  /** Only if a task was asked for by name. */
  | { readonly outcome: 'busy'; readonly why: string; readonly holder: string }
  | { readonly outcome: 'unknown' };

export interface Pause {
  readonly by?: string | undefined;
  readonly at?: string | undefined;
  readonly reason?: string | undefined;
  /** Seconds since 1970; 0: until a person resumes. */
  readonly ends?: number | undefined;
  /** Of a resource: where it stands among the marks of what is held. */
  readonly mark?: string | undefined;
}

/** Somebody else has the task, or nobody: the caller's lease is over. Its result, if it brought one, was kept. */
export interface Late {
  readonly outcome: 'late';
  readonly status: string;
  readonly holder: string;
}
export interface Unknown {
  readonly outcome: 'unknown';
}

export type CompleteOutcome =
  | { readonly outcome: 'completed'; readonly at: string; readonly released: readonly string[] }
  | { readonly outcome: 'already'; readonly at: string }
  | Late
  | Unknown;

export type FailOutcome =
  | { readonly outcome: 'retry'; readonly attempts: number; readonly inMs: number }
  | { readonly outcome: 'failed'; readonly attempts: number }
  | { readonly outcome: 'already' }
  | Late
  | Unknown;

export type DropOutcome = { readonly outcome: 'dropped'; readonly position: number } | Late | Unknown;
export type ReportOutcome = { readonly outcome: 'noted'; readonly expiresAt: string } | Late | Unknown;

/** Why an attempt ended without success. Only the first two are the task's own fault and use up an attempt. */
export const FAILURE_CLASSES = ['task', 'timeout', 'quota', 'auth', 'infra', 'cancelled'] as const;
export type FailureClass = (typeof FAILURE_CLASSES)[number];

export const late = (reply: readonly string[]): Late => ({
  outcome: 'late',
  status: reply[1] as string,
  holder: reply[2] as string,
});
export const UNKNOWN: Unknown = { outcome: 'unknown' };
