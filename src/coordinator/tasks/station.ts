import type { ExecutionResult, TaskState, WorkStatus } from './task.ts';

/** The one word people see first. The last three are sidings: a person must act before the task moves again. */
export const STATIONS = ['review', 'waiting', 'ready', 'working', 'done', 'failed', 'rejected', 'cancelled'] as const;
export type Station = (typeof STATIONS)[number];

/** Where a task stands on both axes. `inconsistent` means that the two contradict each other: see the audit. */
export interface Axes {
  readonly state: TaskState;
  readonly status: WorkStatus;
  /** Tells a task that was given up after its retries from one that was called off; both are CANCELLED. */
  readonly result?: ExecutionResult | undefined;
}

export function stationOf({ state, status, result }: Axes): Station | 'inconsistent' {
  if (!STATUSES_OF[state].includes(status)) return 'inconsistent';
  switch (state) {
    case 'DRAFT':
    case 'SUBMITTED':
    case 'REVIEWING':
      return 'review';
    case 'APPROVED':
      return status === 'pending' ? 'ready' : 'waiting';
    case 'APPLYING':
      return 'working';
    case 'COMPLETED':
      return 'done';
    case 'REJECTED':
      return 'rejected';
    case 'CANCELLED':
      return result === 'failure' || result === 'timeout' ? 'failed' : 'cancelled';
  }
}

/** The statuses that go with a state; the first is the one it enters with. */
export const STATUSES_OF: Readonly<Record<TaskState, readonly WorkStatus[]>> = {
  DRAFT: ['blocked'],
  SUBMITTED: ['blocked'],
  REVIEWING: ['blocked'],
  APPROVED: ['blocked', 'pending'],
  APPLYING: ['assigned', 'in_progress'],
  COMPLETED: ['completed'],
  REJECTED: ['failed'],
  CANCELLED: ['failed'],
};

/** The state that a status speaks for, where Redis has forgotten the state itself: that lives 90 days, the queue knows its tasks for good. */
export const STATE_OF: Readonly<Record<WorkStatus, TaskState>> = {
  pending: 'APPROVED',
  blocked: 'APPROVED',
  assigned: 'APPLYING',
  in_progress: 'APPLYING',
  completed: 'COMPLETED',
  failed: 'CANCELLED',
};

/** How far the work is, as far as anyone outside the queue need know; also what a task file can say. */
export const PHASES = ['open', 'running', 'completed', 'failed', 'cancelled'] as const;
export type Phase = (typeof PHASES)[number];

export function phaseOf(station: Station): Phase {
  switch (station) {
    case 'review':
    case 'waiting':
    case 'ready':
      return 'open';
    case 'working':
      return 'running';
    case 'done':
      return 'completed';
    case 'failed':
      return 'failed';
    case 'rejected':
    case 'cancelled':
      return 'cancelled';
  }
}
