import type { Task } from './task.ts';
import type { WaitingFor } from './task-judge.ts';

/** What stands between a task and the queue, as far as the task room knows of it. Without one every task passes. */
export interface Gate {
  /** For each of these tasks whether it may pass unasked. All are judged before any is admitted or changed. */
  judge(tasks: readonly Task[], waitingFor: WaitingFor): Promise<ReadonlyMap<string, Passage>>;
  /** Whether a task is ruled upon anew when it is tried again, whatever judge() would say. */
  isWritten(task: string): Promise<boolean>;
  /** Those of these that were submitted, or were drafted by a file, stand before the gate: people are to be asked. May be repeated. */
  ask(tasks: readonly string[], what: { readonly drafts: boolean }): Promise<void>;
}

export interface Passage {
  readonly passes: boolean;
  /** Fields and values of `ade:task:{id}:risk`. */
  readonly risk: readonly (string | number)[];
}
