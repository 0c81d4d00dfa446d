import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { basename, delimiter, join } from 'node:path';
import { reason } from '../errors.ts';

export type ProgramEnv = Readonly<Record<string, string | undefined>>;

export interface RunOptions {
  readonly env: ProgramEnv;
  readonly timeoutMs: number;
  readonly cwd?: string;
  readonly signal?: AbortSignal;
}

/** Runs a program to its end and gives what it printed. Failing, it says which program and its most telling line. */
export function runProgram(program: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { env, timeoutMs, cwd, signal } = options;
  return new Promise((resolve, reject) => {
    const limits = { timeout: timeoutMs, maxBuffer: 16 * 1024 * 1024 };
    execFile(program, args, { env, cwd, signal, ...limits }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const told = error.killed && !signal?.aborted ? `took longer than ${timeoutMs / 1000} s` : tellingLine(stderr);
      reject(new Error(`${basename(program)}: ${told ?? reason(error)}`, { cause: error }));
    });
  });
}

/** The first file of that name in the directories that this user may run. */
export async function findProgram(name: string, directories: readonly string[]): Promise<string | undefined> {
  for (const directory of directories) {
    const file = join(directory, name);
    if (await isRunnable(file)) return file;
  }
  return undefined;
}

export const directoriesOf = (path: string): string[] => path.split(delimiter).filter(Boolean);

async function isRunnable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** apt marks its errors with "E:" and follows them with advice; most others end with what went wrong. */
function tellingLine(stderr: string): string | undefined {
  const lines = stderr.split('\n').map((line) => line.trim());
  return lines.find((line) => line.startsWith('E: ')) ?? lines.filter(Boolean).at(-1);
}
