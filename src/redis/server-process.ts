import { type ChildProcess, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import type { RedisProgram } from './find-server.ts';
import { directoriesOf, findProgram, runProgram } from './run-program.ts';
import type { ServerFiles } from './server-files.ts';

/** One run of the server program, from its spawn to its end. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves when it is gone, with how: "exit code 1", "signal SIGKILL". */
  readonly exited: Promise<string>;
  /** Asks it to end, which makes Redis write out its append-only file; forces it after the grace period. */
  end(graceMs: number): Promise<void>;
}

export interface LaunchOptions {
  readonly program: RedisProgram;
  readonly files: ServerFiles;
  /** The text of PATH, to find setpriv. */
  readonly path: string;
  readonly clock: Clock;
}

/**
 * Runs the server as a child that cannot outlive us, even when we are killed with -9. Where setpriv can, the kernel
 * sees to it (PR_SET_PDEATHSIG, out of reach from Node); elsewhere a shell that notices our end does.
 * The child leads a session of its own: Ctrl-C in a terminal is for the daemon, which still needs Redis to drain.
 */
export async function launch({ program, files, path, clock }: LaunchOptions): Promise<ServerProcess> {
  const setpriv = await deathSignalTool(path);
  const server = [program.program, files.config] as const;
  const [file, ...args] = setpriv ? [setpriv, '--pdeathsig', 'TERM', '--', ...server] : server;
  // What it says before it opens its log, such as a library it lacks, goes to the same place.
  const log = await open(files.log, 'a', 0o600);
  try {
    const env = { LC_ALL: 'C', ...(program.libraryPath && { LD_LIBRARY_PATH: program.libraryPath }) };
    const child = spawn(file, args, { env, cwd: files.dir, detached: true, stdio: ['ignore', log.fd, log.fd] });
    const exited = exitOf(child);
    if (child.pid === undefined) throw new Error(await exited);
    if (!setpriv) watchOver(child.pid, exited);
    return { pid: child.pid, exited, end: (graceMs) => end(child, exited, graceMs, clock) };
  } finally {
    await log.close();
  }
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
  });
}

async function end(child: ChildProcess, exited: Promise<string>, graceMs: number, clock: Clock): Promise<void> {
  child.kill('SIGTERM');
  const over = new AbortController();
  const late = clock.sleep(graceMs, over.signal).then(() => over.signal.aborted || child.kill('SIGKILL'));
  await exited;
  over.abort();
  await late;
}

async function deathSignalTool(path: string): Promise<string | undefined> {
  const setpriv = await findProgram('setpriv', directoriesOf(path));
  if (!setpriv) return undefined;
  const help = await runProgram(setpriv, ['--help'], { env: {}, timeoutMs: 5_000 }).catch(() => '');
  return help.includes('--pdeathsig') ? setpriv : undefined;
}

/** Our end of its input closes when we die, however we die; then it ends the server. */
const WATCH = `read -r _
kill -TERM "$1" || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 "$1" || exit 0; done
kill -KILL "$1"`;

function watchOver(pid: number, exited: Promise<string>): void {
  const watcher = spawn('/bin/sh', ['-c', WATCH, 'sh', String(pid)], {
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.on('error', () => {});
  watcher.stdin.on('error', () => {});
  // Killed, not let go: let go, it would signal a number that may by then be someone else's.
  void exited.then(() => watcher.kill('SIGKILL'));
}

/**
 * Ends a server that an earlier daemon left behind in this directory. It is known by its pid file, and trusted only if
 * that process was started with our configuration file: numbers are given out again.
 */
export async function endLeftover(files: ServerFiles, graceMs: number, clock: Clock): Promise<number | undefined> {
  const pid = Number.parseInt(await readFile(files.pid, 'utf8').catch(() => ''), 10);
  const isOurs = async () => (await commandLine(pid)).includes(files.config);
  if (!(pid > 1) || !(await isOurs())) return undefined;
  const deadline = clock.now() + graceMs;
  signal(pid, 'SIGTERM');
  while (await isOurs()) {
    if (clock.now() > deadline + graceMs) throw new Error(`process ${pid}, left by an earlier daemon, does not end`);
    if (clock.now() > deadline) signal(pid, 'SIGKILL');
    await clock.sleep(20);
  }
  return pid;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Gone in the meantime, or not ours to signal: the caller looks again and gives up in time.
  }
}

/** Empty when there is no such process; a zombie has no command line either. */
async function commandLine(pid: number): Promise<string> {
  if (process.platform === 'linux') return await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const env = { LC_ALL: 'C' };
  return await runProgram('/bin/ps', ['-ww', '-o', 'command=', '-p', String(pid)], { env, timeoutMs: 5_000 }).catch(
    () => '',
  );
}
