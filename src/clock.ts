import { setImmediate as turn } from 'node:timers/promises';

/** The only place that asks the machine for the time or waits for it. Everything else is given a Clock. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal is aborted; never rejects, so that a loop can simply look at its signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const timer = setTimeout(done, ms);
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done, { once: true });
    }),
};

/** RFC 3339 in UTC, the way every key stores a time. */
export const isoTime = (clock: Clock): string => new Date(clock.now()).toISOString();

/** Spreads a period by up to a fifth either way, so that daemons started together do not poll together. */
export const jittered = (ms: number, random: () => number = Math.random): number =>
  Math.round(ms * (0.8 + 0.4 * random()));

/** Doubles from `base` to `max` with the attempt (0, 1, 2 …), jittered. */
export const backOff = (attempt: number, base: number, max: number, random?: () => number): number =>
  jittered(Math.min(max, base * 2 ** Math.min(attempt, 30)), random);

/** Races work against a deadline. The work is not stopped by it, only no longer waited for. */
export async function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  const over = new AbortController();
  try {
    return await Promise.race([
      work,
      clock.sleep(ms, over.signal).then(() => {
        if (!over.signal.aborted) throw late();
        return work;
      }),
    ]);
  } finally {
    over.abort();
  }
}

/** Long enough to get something done, short enough that nobody waits for it. */
const STRETCH_MS = 8;

/** Asked between pieces of a long computation: lets the event loop turn when a stretch has lasted long enough. */
export type Pace = () => Promise<void> | undefined;

export function createPace(): Pace {
  let began = performance.now();
  return () => {
    if (performance.now() - began < STRETCH_MS) return undefined;
    return turn().then(() => {
      began = performance.now();
    });
  };
}
