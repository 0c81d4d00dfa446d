import { systemClock } from '../src/clock.ts';
import { processorWaitMs } from './processor-wait.ts';

/** The longest that something stood still. */
export interface Stillness {
  /** By the clock on the wall. */
  readonly wallMs: number;
  /** Less the time in which it was ready to go on, but the machine ran something else. */
  readonly ownMs: number;
}

export interface Watched {
  /** The processes that must run for it to go on. */
  readonly pids: readonly number[];
  /** Resolves when it has answered; left out, it is the event loop of this process that is watched. */
  readonly ask?: () => Promise<unknown>;
}

const PROBE_MS = 2;

/** Asks again and again until the signal. Where several processes waited at a time, only the longest wait is taken out. */
export async function longestStillness({ pids, ask }: Watched, over: AbortSignal): Promise<Stillness> {
  let [wall, own] = [0, 0];
  while (!over.aborted) {
    const before = pids.map(processorWaitMs);
    const began = performance.now();
    await systemClock.sleep(PROBE_MS, over);
    await ask?.();
    const still = performance.now() - began - PROBE_MS;
    const waited = Math.max(...pids.map((pid, at) => processorWaitMs(pid) - before[at]!));
    wall = Math.max(wall, still);
    own = Math.max(own, still - waited);
  }
  return { wallMs: wall, ownMs: own };
}

export const worstOf = (all: readonly Stillness[]): Stillness => ({
  wallMs: Math.max(...all.map(({ wallMs }) => wallMs)),
  ownMs: Math.max(...all.map(({ ownMs }) => ownMs)),
});
