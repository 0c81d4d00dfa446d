import type { ReeveEvent } from '../events/catalogue.ts';

/** That a task reached something. */
export interface TaskMark {
  readonly task: string;
  readonly what:
    | 'created'
    | 'drafted'
    | 'submitted'
    | 'reviewed'
    | 'approved'
    | 'started'
    | 'completed'
    | 'cancelled'
    | 'rejected';
  readonly at: string;
}

const STATES: Readonly<Record<string, TaskMark['what']>> = {
  DRAFT: 'drafted',
  SUBMITTED: 'submitted',
  REVIEWING: 'reviewed',
  APPROVED: 'approved',
  APPLYING: 'started',
  COMPLETED: 'completed',
  CANCELLED: 'cancelled',
  REJECTED: 'rejected',
};

/** What an event says about tasks. Those that were taken in are named as the queue has them. */
export function taskMarks({ event, at, payload }: ReeveEvent, lifecycleId: (task: string) => string): TaskMark[] {
  const { task_id: task, to, tasks } = payload;
  if (event === 'tasks_admitted') {
    const made = Array.isArray(tasks) ? tasks.filter((one) => typeof one === 'string') : [];
    return made.map((one) => ({ task: lifecycleId(one), what: 'created', at }));
  }
  const what = typeof to === 'string' ? STATES[to] : undefined;
  return event.startsWith('task:') && typeof task === 'string' && what ? [{ task, what, at }] : [];
}

/** That a reviewer was asked, or answered. */
export interface ApprovalMark {
  readonly approval: string;
  readonly task: string;
  readonly reviewer: string;
  readonly at: string;
  readonly answer?: string;
}

const ANSWERS: Readonly<Record<string, string>> = {
  'approval:approved': 'approve',
  'approval:rejected': 'reject',
  'approval:changes_requested': 'request_changes',
};

export function approvalMarks({ event, at, payload }: ReeveEvent): ApprovalMark[] {
  const { approval_id: approval, task_id: task, reviewer } = payload;
  if (typeof approval !== 'string' || typeof task !== 'string' || typeof reviewer !== 'string') return [];
  const answer = ANSWERS[event];
  if (event !== 'approval:requested' && answer === undefined) return [];
  return [{ approval, task, reviewer, at, ...(answer !== undefined && { answer }) }];
}
