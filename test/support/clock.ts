import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../src/clock.ts';

export interface FakeClock extends Clock {
  /**
   * Moves time on. Sleepers wake in the order of their deadlines, each at its own moment, and what one does on waking
   * (sleep again, for one) is done before the next wakes.
   */
  advance(ms: number): Promise<void>;
  /** Resolves when at least this many sleep: before that, moving time would move it past them. */
  asleep(count?: number): Promise<void>;
  readonly sleepers: number;
}

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/** A Clock that stands still until a test moves it. */
export function fakeClock(startAt = Date.UTC(2026, 0, 1)): FakeClock {
  let now = startAt;
  const sleepers = new Set<Sleeper>();
  const nextDue = (end: number) =>
    [...sleepers].filter(({ until }) => until <= end).toSorted((a, b) => a.until - b.until)[0];

  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      if (signal?.aborted) return resolve();
      const sleeper: Sleeper = {
        until: now + ms,
        wake: () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', sleeper.wake, { once: true });
    });

  async function advance(ms: number): Promise<void> {
    const end = now + ms;
    await setImmediate();
    for (let sleeper = nextDue(end); sleeper; sleeper = nextDue(end)) {
      now = Math.max(now, sleeper.until);
      sleeper.wake();
      await setImmediate();
    }
    now = end;
  }

  return {
    now: () => now,
    sleep,
    advance,
    asleep: async (count = 1) => {
      while (sleepers.size < count) await setImmediate();
    },
    get sleepers() {
      return sleepers.size;
    },
  };
}
