import { spawn } from 'node:child_process';

/** What git may know of this process: where programs and the user's own settings are. */
export interface GitSurroundings {
  readonly PATH: string;
  readonly HOME: string;
}

export interface GitCall {
  readonly dir: string;
  readonly surroundings: GitSurroundings;
  readonly args: readonly string[];
  readonly input?: Uint8Array | string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What git said when it refused. */
export class GitFailure extends Error {
  readonly exitCode: number | null;

  constructor(args: readonly string[], exitCode: number | null, complaint: string) {
    super(complaint.trim() || `git ${args[0]} ended with ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/**
 * Nothing of the repository's own configuration may run a program, and nothing of ours may leak in: variables such as
 * GIT_DIR would send the call to another repository.
 */
const CALM = ['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'gc.auto=0', 'commit.gpgSign=false'];
const MANNERS = { LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', GIT_OPTIONAL_LOCKS: '0', GIT_NO_REPLACE_OBJECTS: '1' };

/** A running git whose output is read as it comes. Whoever started it ends it by the signal. */
export const gitProcess = ({ dir, surroundings, args, env, signal }: GitCall) =>
  spawn('git', [...CALM.flatMap((setting) => ['-c', setting]), '-C', dir, ...args], {
    env: { ...surroundings, ...MANNERS, ...env },
    ...(signal && { signal }),
  });

/** Runs git to its end and returns what it wrote. */
export function git(call: GitCall): Promise<Buffer> {
  const { args, input } = call;
  return new Promise((resolve, reject) => {
    const child = gitProcess(call);
    const said: Buffer[] = [];
    let complaint = '';
    child.stdout.on('data', (chunk: Buffer) => said.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      complaint += chunk.toString();
    });
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve(Buffer.concat(said)) : reject(new GitFailure(args, code, complaint)),
    );
    // git may have ended without reading all; its exit code tells.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
  });
}

export const gitText = async (call: GitCall): Promise<string> => (await git(call)).toString().trim();
