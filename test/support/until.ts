import { readFile } from 'node:fs/promises';
import { systemClock } from '../../src/clock.ts';

/** Looks again and again until the answer is truthy; fails with what was awaited when that takes too long. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 10_000,
): Promise<T> {
  const deadline = systemClock.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (systemClock.now() > deadline) throw new Error(`waited ${withinMs} ms in vain: ${what}`);
    await systemClock.sleep(10);
  }
}

/** Whether a process runs; one that has ended but was not yet collected by its parent does not. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return stat === undefined ? process.platform !== 'linux' : !/\) Z /.test(stat);
}
