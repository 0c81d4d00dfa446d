import type { FileHandle } from 'node:fs/promises';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Claimed } from './work-client.ts';

export interface Surrounding {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly url: string;
  readonly token?: string | undefined;
  /** Where commands leave their results; {task} stands for the id. Without it, in a file of the attempt's own. */
  readonly resultFile?: string | undefined;
}

/** What a command is given: its task as a file (which is also its standard input), and a file for its result. */
export interface Papers extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: FileHandle;
  readonly result: FileHandle;
  readonly resultFile: string;
  /** Where what undoes the change goes, before it is made. */
  readonly stashFile: string;
}

/**
 * Standard input and descriptor 3 are files, not pipes: a command that does not read cannot stall us, a second reader
 * (a rollback) finds the beginning again, and /dev/stdin and /dev/fd/3 can be opened by name.
 */
export async function layOut(claimed: Claimed, { cwd, url, token, resultFile: named }: Surrounding): Promise<Papers> {
  const folder = await mkdtemp(join(tmpdir(), 'reeve-task-'));
  const { task, lease } = claimed;
  const taskFile = join(folder, 'task.json');
  const resultFile = named
    ? resolve(cwd, named.replaceAll('{task}', encodeURIComponent(task.task_id)))
    : join(folder, 'result.json');
  const stashFile = join(folder, 'stash');
  await writeFile(taskFile, `${JSON.stringify(claimed)}\n`, { mode: 0o600 });
  const stdin = await open(taskFile, 'r');
  // Emptied first: a result from another time must not count for this one.
  const result = await open(resultFile, 'w+', 0o600);
  return {
    env: {
      REEVE_URL: url,
      ...(token !== undefined && { REEVE_TOKEN: token }),
      REEVE_AGENT: lease.agent_id,
      REEVE_AGENT_ID: lease.agent_id,
      REEVE_TASK_ID: task.task_id,
      REEVE_TASK_TITLE: asVariable(task.title),
      REEVE_TASK_FILE: taskFile,
      REEVE_RESULT_FILE: resultFile,
      REEVE_STASH_FILE: stashFile,
      REEVE_ATTEMPT: String(lease.attempt),
      REEVE_LOCK_ID: lease.lock_id,
      REEVE_FENCING_TOKEN: lease.fencing_token,
    },
    stdin,
    result,
    resultFile,
    stashFile,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([stdin.close(), result.close()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const LONGEST_VARIABLE = 4_096;

/** The whole of it is in the file; a variable ends at a NUL and may not be of any length. */
const asVariable = (text: string): string => text.replaceAll('\0', '').slice(0, LONGEST_VARIABLE);
