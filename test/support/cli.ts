import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

export const ROOT = join(import.meta.dirname, '../..');
export const REEVE = join(ROOT, 'bin/reeve');

export interface CliOptions {
  readonly cwd: string;
  /** On top of what any program needs; nothing of the settings of whoever runs the tests gets in. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  /** Leaves its input open, as a terminal or a client that is still there does. */
  readonly keepsInput?: boolean;
  /** Another program to run with the arguments, such as a shell. */
  readonly program?: string;
  /** Told the running process, to send it signals. */
  readonly started?: (child: ChildProcess) => void;
}

export interface Ran {
  /** The exit code, or the signal that ended it. */
  readonly code: number | NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built program as a user would, and waits for its end. */
export async function reeve(args: readonly string[], options: CliOptions): Promise<Ran> {
  const { cwd, env = {}, input, keepsInput = false, program = REEVE, started } = options;
  const child = spawn(program, args, { cwd, env: plainEnv(env) });
  started?.(child);
  // A program that does not read its input closes it.
  child.stdin.on('error', () => {});
  if (!keepsInput) child.stdin.end(input);
  const ended = new Promise<Ran['code']>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(signal ?? code));
  });
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

/** The one JSON object that a command with --json prints. Fails if there is more than that, or less. */
export function onlyObject({ stdout }: Pick<Ran, 'stdout'>): Record<string, unknown> {
  const value: unknown = JSON.parse(stdout);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`no object: ${stdout}`);
  return value as Record<string, unknown>;
}

const NEEDED = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'XDG_CACHE_HOME'];

/** The environment of a fresh login: without settings of reeve, colours or credentials. */
export const plainEnv = (more: CliOptions['env'] = {}): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(NEEDED.map((name) => [name, process.env[name]])),
  ...more,
});
