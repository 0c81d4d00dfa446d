import { open } from 'node:fs/promises';
import type { KeptLease, Manner } from './attempt.ts';
import { type Ran, runCommand } from './command.ts';
import type { Papers } from './contract.ts';
import { exitCodeOf } from './leash.ts';
import type { Claimed } from './work-client.ts';

/** What an attempt is made with. */
export interface Attempting {
  readonly manner: Manner;
  readonly papers: Papers;
  readonly kept: KeptLease;
}

export type Undone = { readonly outcome: 'done' | 'failed'; readonly says: string };

/** Longer than this nobody waits for an undoing. */
const AT_MOST_MS = 10 * 60_000;

/** Runs the command that undoes, with what was saved in the file of that name. */
export async function undo(
  held: Claimed,
  command: string,
  { ran, manner, papers, kept }: Attempting & { readonly ran?: Ran },
): Promise<Undone> {
  const { clock, cwd, env, passOn, forced, say } = manner;
  const { task_id: id } = held.task;
  say(id, 'rolling back');
  const stdin = await open(papers.env.REEVE_TASK_FILE as string, 'r');
  try {
    const undone = await runCommand({
      argv: ['/bin/sh', '-c', command],
      cwd,
      env: { ...env, ...papers.env, ...(ran && { REEVE_EXIT_CODE: String(exitCodeOf(ran)) }) },
      clock,
      stdio: [stdin.fd, 'pipe', 'pipe', 'ignore'],
      passOn: passOn?.(id),
      timeoutMs: AT_MOST_MS,
      // One who is told to stop still tidies up.
      stops: { lost: kept.signal, told: new AbortController().signal, forced },
    });
    const exitCode = exitCodeOf(undone);
    if (exitCode === 0 && undone.stopped === undefined) return { outcome: 'done', says: 'rolled back' };
    const says = `the rollback failed, too (exit code ${exitCode}): a person has to do it: reeve task rollback ${id}`;
    return { outcome: 'failed', says };
  } finally {
    await stdin.close();
  }
}
