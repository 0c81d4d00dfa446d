import type { Output } from '../output.ts';
import { line } from '../render.ts';

interface Claimed {
  readonly task?: Readonly<Record<string, unknown>> & { readonly task_id: string; readonly title?: string };
  readonly lease?: { readonly lock_id: string; readonly expires_at: string; readonly attempt: number };
}

/** A verdict an agent can act on, then the task as its reader needs it. The same with and without a terminal. */
export function show(output: Output, { task, lease }: Claimed): void {
  if (!task || !lease) {
    output.print(`none ${line({ fix: 'reeve next --agent ID --wait 60' })}`);
    return;
  }
  const { lock_id, expires_at, attempt } = lease;
  output.print(`ok ${line({ task: task.task_id, lease: lock_id, until: expires_at, attempt, title: task.title })}`);
  output.print('');
  for (const [name, label] of SHOWN) {
    const text = told(task[name]);
    if (text) output.print(`${label}: ${text}`);
  }
}

const SHOWN = [
  ['description', 'what'],
  ['acceptance_criteria', 'done when'],
  ['files_to_modify', 'files'],
  ['tech_stack', 'with'],
  ['category', 'category'],
  ['epic', 'epic'],
  ['rollback_strategy', 'rollback'],
] as const;

const told = (value: unknown): string =>
  Array.isArray(value) ? value.join(', ') : typeof value === 'string' ? value : '';
