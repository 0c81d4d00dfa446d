import { open } from 'node:fs/promises';
import type { KeptLease, Manner } from './attempt.ts';
import { type Ran, runCommand } from './command.ts';
import type { Papers } from './contract.ts';
import { exitCodeOf } from './leash.ts';
import type { Claimed } from './work-client.ts';

export interface RolledBack {
  readonly outcome: 'none' | 'done' | 'failed' | 'manual';
  /** What a person should know. */
  readonly says?: string | undefined;
}

export interface Failed {
  readonly ran: Ran;
  readonly manner: Manner;
  readonly papers: Papers;
  readonly kept: KeptLease;
}

/** Longer than this nobody waits for an undoing. */
const AT_MOST_MS = 10 * 60_000;

/**
 * Undoes what a failed attempt left, as the task says: by the rollback command, by a person, or not at all. The lease
 * is still held meanwhile, so that nobody builds on what is being taken away.
 */
export async function rollBack(held: Claimed, failed: Failed): Promise<RolledBack> {
  const { rollback } = failed.manner;
  switch (held.task.rollback_strategy) {
    case 'none':
      return { outcome: 'none' };
    case 'manual':
      return { outcome: 'manual', says: 'a person has to roll it back' };
    case 'automatic':
      if (rollback !== undefined) return undo(held, rollback, failed);
      return { outcome: 'manual', says: 'a person has to roll it back: the worker has no --rollback command' };
  }
}

async function undo(held: Claimed, command: string, { ran, manner, papers, kept }: Failed): Promise<RolledBack> {
  const { clock, cwd, env, passOn, forced, say } = manner;
  const { task_id: id } = held.task;
  say(id, 'rolling back');
  const stdin = await open(papers.env.REEVE_TASK_FILE as string, 'r');
  try {
    const undone = await runCommand({
      argv: ['/bin/sh', '-c', command],
      cwd,
      env: { ...env, ...papers.env, REEVE_EXIT_CODE: String(exitCodeOf(ran)) },
      clock,
      stdio: [stdin.fd, 'pipe', 'pipe', 'ignore'],
      passOn: passOn?.(id),
      timeoutMs: AT_MOST_MS,
      // One who is told to stop still tidies up.
      stops: { lost: kept.signal, told: new AbortController().signal, forced },
    });
    const exitCode = exitCodeOf(undone);
    if (exitCode === 0 && undone.stopped === undefined) return { outcome: 'done', says: 'rolled back' };
    return { outcome: 'failed', says: `the rollback failed, too (exit code ${exitCode}): a person has to do it` };
  } finally {
    await stdin.close();
  }
}
