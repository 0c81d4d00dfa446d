import { reason } from '../../errors.ts';
import type { Ran } from './command.ts';
import { fetchStash, handInLeft } from './stash.ts';
import { type Attempting, undo } from './undo.ts';
import type { Claimed } from './work-client.ts';

export interface RolledBack {
  readonly outcome: 'none' | 'done' | 'failed' | 'manual';
  /** What a person should know. */
  readonly says?: string | undefined;
}

/**
 * Undoes what a failed attempt left, as the task says: by the rollback command, by a person, or not at all. The lease
 * is still held meanwhile, so that nobody builds on what is being taken away.
 */
export async function rollBack(held: Claimed, failed: Attempting & { readonly ran: Ran }): Promise<RolledBack> {
  const { task_id: id, rollback_strategy: strategy } = held.task;
  const { rollback, work, say } = failed.manner;
  if (strategy === 'none') return { outcome: 'none' };
  await handInLeft(held, failed);
  const toDo = `a person has to roll it back: reeve task rollback ${id}`;
  if (strategy === 'manual') return { outcome: 'manual', says: toDo };
  const back =
    rollback === undefined
      ? ({ outcome: 'manual', says: `${toDo} (the worker has no --rollback command)` } as const)
      : await fetchStash(held, failed).then(() => undo(held, rollback, failed));
  const trouble = (error: unknown) => say(id, `how the rollback went was not delivered: ${reason(error)}`);
  await work.rolledBack(held, back.outcome, back.says).catch(trouble);
  return back;
}
