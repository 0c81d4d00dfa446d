import type { Task, TaskState } from '../coordinator/tasks/task.ts';
import type { Assessment } from './assessor.ts';
import type { Assignment, PolicyRef } from './assignment.ts';
import type { Preview } from './preview.ts';
import type { Risk } from './risk.ts';

/** What became, or would become, of a task at the gate. */
export interface Ruling {
  readonly task_id: string;
  readonly state: TaskState;
  readonly because: string;
  readonly risk: Risk;
  readonly policies: readonly PolicyRef[];
  readonly requests: readonly { readonly approval_id?: string; readonly reviewer: string }[];
  readonly preview: Preview;
}

export const STATE_AFTER = { unasked: 'APPROVED', ask: 'REVIEWING', nobody: 'SUBMITTED' } as const;

export function rulingOf(
  { task_id }: Task,
  { risk, preview }: Assessment,
  assignment: Assignment,
  { state, ids }: { readonly state: TaskState; readonly ids: readonly string[] },
): Ruling {
  const asked = assignment.outcome === 'ask' ? assignment.asked : [];
  const requests = asked.map(({ to }, at) => ({ ...(ids[at] && { approval_id: ids[at] }), reviewer: to }));
  return { task_id, state, because: assignment.because, risk, policies: assignment.policies, requests, preview };
}
