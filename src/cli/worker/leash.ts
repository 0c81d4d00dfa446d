import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Clock } from '../../clock.ts';
import { reason } from '../../errors.ts';

/**
 * Starts what it is given in a process group of its own, on a leash: file descriptor 4 is a line to us that says
 * nothing. When it breaks, which it does however we come to our end, all of the group is ended. So no command works
 * on after its host, without a heartbeat, on a task that by then is somebody else's.
 */
const LEASH = `{ read -r _ <&4; trap '' TERM; kill -TERM -$$; sleep 10; kill -KILL -$$; } </dev/null >/dev/null 2>&1 3>&- &
exec "$@" 4<&-`;

const NOT_FOUND = 127;
const NOT_RUNNABLE = 126;

export interface LeashOptions {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard input, output and error, and the result as descriptor 3. */
  readonly stdio: readonly [Stdio, Stdio, Stdio, Stdio];
  /** Stays in our group, so that it can read from our terminal. Then Ctrl-C there reaches it by itself. */
  readonly isInForeground?: boolean | undefined;
}
type Stdio = 'pipe' | 'inherit' | 'ignore' | number;

export interface Ended {
  readonly code: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** It could not be started. */
  readonly problem?: string | undefined;
}

/** A running command, with all that it has started. */
export interface Leashed {
  readonly stdout: NodeJS.ReadableStream | null;
  readonly stderr: NodeJS.ReadableStream | null;
  readonly ended: Promise<Ended>;
  /** Asks it to end, and after `killAfterMs` does not ask any more. */
  stop(name: NodeJS.Signals, killAfterMs: number, clock: Clock): Promise<void>;
  /** Ends at once whatever of it is still there. */
  kill(): void;
  /** Reads no more: one who left the group may hold the other end for ever. */
  letGo(): void;
}

export function startLeashed(options: LeashOptions): Leashed {
  const { argv, cwd, env, stdio, isInForeground = false } = options;
  const [program, ...args] = argv;
  const line: StdioOptions = isInForeground ? [...stdio] : [...stdio, 'pipe'];
  const spawnOptions = { cwd, env: { ...env }, stdio: line, detached: !isInForeground };
  const child = isInForeground
    ? spawn(program, args, spawnOptions)
    : spawn('/bin/sh', ['-c', LEASH, 'reeve', ...argv], spawnOptions);
  const ended = endOf(child);
  const send = (name: NodeJS.Signals) => sendTo(child, name, !isInForeground);
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    ended,
    stop: async (name, killAfterMs, clock) => {
      const gone = new AbortController();
      void ended.then(() => gone.abort());
      send(name);
      await clock.sleep(killAfterMs, gone.signal);
      if (!gone.signal.aborted) send('SIGKILL');
    },
    kill: () => send('SIGKILL'),
    letGo: () => {
      for (const stream of child.stdio) stream?.destroy();
    },
  };
}

/** What a shell would call it. */
export const exitCodeOf = ({ code, signal }: Ended): number =>
  signal ? 128 + constants.signals[signal] : (code ?? NOT_RUNNABLE);

/** What a shell calls the end of one who was told to stop. */
export const interrupted = ({ reason: name }: AbortSignal): number =>
  128 + constants.signals[name === 'SIGTERM' ? 'SIGTERM' : 'SIGINT'];

function endOf(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'ENOENT' ? NOT_FOUND : NOT_RUNNABLE;
      resolve({ code, signal: undefined, problem: reason(error) });
    });
    child.once('exit', (code, signal) => resolve({ code: code ?? undefined, signal: signal ?? undefined }));
  });
}

/** The number of a group is not given to another while any of its members lives, the guard of the leash included. */
function sendTo(child: ChildProcess, name: NodeJS.Signals, isGroup: boolean): void {
  try {
    if (isGroup && child.pid !== undefined) process.kill(-child.pid, name);
    else child.kill(name);
  } catch {
    // It is gone already, which is what was wanted.
  }
}
