import type { Output } from '../output.ts';
import { line } from '../render.ts';

interface Ended {
  readonly ended: readonly {
    readonly task_id: string;
    readonly outcome: string;
    readonly unblocked: readonly string[];
    readonly holder?: string;
  }[];
}

/** One line for each task, its outcome first. */
export function show(output: Output, { ended }: Ended): void {
  for (const { task_id, outcome, unblocked, holder } of ended) {
    const released = unblocked.length > 0 ? unblocked.join(',') : undefined;
    output.print(`${outcome} ${line({ task: task_id, unblocked: released, holder })}`);
  }
}
