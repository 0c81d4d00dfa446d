import type { Output } from '../output.ts';
import { line } from '../render.ts';

interface Claims {
  readonly claimed?: readonly {
    readonly task: { readonly task_id: string; readonly title?: string };
    readonly lease: { readonly lock_id: string; readonly expires_at: string; readonly attempt: number };
  }[];
}

/** One line for each task; what is to be done is in `reeve task show`, and with --json. */
export function show(output: Output, { claimed = [] }: Claims): void {
  if (claimed.length === 0) output.print(`none ${line({ fix: 'reeve next --agent ID --wait 60' })}`);
  for (const { task, lease } of claimed) {
    const { lock_id, expires_at, attempt } = lease;
    output.print(`ok ${line({ task: task.task_id, lease: lock_id, until: expires_at, attempt, title: task.title })}`);
  }
}
