import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const REEVE = join(import.meta.dirname, '../bin/reeve');

/** The settings of whoever runs the bench stay outside. */
const ENV: NodeJS.ProcessEnv = Object.fromEntries(
  ['PATH', 'HOME', 'TMPDIR', 'XDG_CACHE_HOME'].map((name) => [name, process.env[name]]),
);

/** How long a program runs, from its start to its end, in milliseconds. It must succeed. */
export async function runtimeOf(program: string, args: readonly string[], cwd: string): Promise<number> {
  const began = performance.now();
  const child = spawn(program, args, { cwd, env: ENV, stdio: 'ignore' });
  const code = await exitOf(child);
  const took = performance.now() - began;
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}`);
  return took;
}

/** A daemon in an empty folder of its own, as a first start would be. */
export interface MeasuredDaemon extends AsyncDisposable {
  readonly pid: number;
  readonly redisPid: number;
  readonly cwd: string;
  readonly url: string;
  /** From the start of the process to the line that says it is ready. */
  readonly readyMs: number;
  /** Asks it to end; how long that took until nothing of it was left. */
  stop(): Promise<number>;
}

export async function startDaemon(more: readonly string[] = []): Promise<MeasuredDaemon> {
  const cwd = await mkdtemp(join(tmpdir(), 'reeve-bench-'));
  const began = performance.now();
  const child = spawn(REEVE, ['daemon', '--http-port', '0', ...more], {
    cwd,
    env: ENV,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = exitOf(child);
  const { url } = await Promise.race([saidReady(child), exited.then(fail)]);
  const readyMs = performance.now() - began;
  const { status } = await fetch(`${url}/readyz`);
  if (status !== 200) throw new Error(`the daemon says it is ready, and /readyz says ${status}`);
  const redisPid = Number(await readFile(join(cwd, '.reeve/redis/redis.pid'), 'utf8'));
  const stop = async () => {
    const asked = performance.now();
    child.kill('SIGTERM');
    const code = await exited;
    if (code !== 0) fail(code);
    return performance.now() - asked;
  };
  const dispose = async () => {
    if (child.exitCode === null && child.signalCode === null) await stop();
    await rm(cwd, { recursive: true, force: true });
  };
  return { pid: child.pid as number, redisPid, cwd, url, readyMs, stop, [Symbol.asyncDispose]: dispose };
}

function fail(code: number | string | null): never {
  throw new Error(`the daemon ended with ${code}`);
}

function exitOf(child: ChildProcess): Promise<number | string | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(signal ?? code));
  });
}

function saidReady(child: ChildProcess): Promise<{ url: string }> {
  return new Promise((resolve) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const said = JSON.parse(line) as { msg: string; url: string };
      if (said.msg === 'ready') resolve(said);
    });
  });
}

/** Memory that is its own or shared, in MiB, as the kernel counts it. */
export async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

const TICKS_PER_SECOND = 100;

/** Processor time used so far, in seconds: fields 14 and 15 of /proc/PID/stat, in ticks. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
