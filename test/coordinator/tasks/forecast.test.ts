import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { forecast } from '../../../src/coordinator/tasks/forecast.ts';

const MINUTE = 60_000;
const now = 1_000 * MINUTE;
/** One each minute, the last one just now. */
const steady = Array.from({ length: 61 }, (_, at) => now - at * MINUTE);

describe('what is left of the work', () => {
  test('at a steady pace takes its time, give or take little', () => {
    const { rate_per_hour, p50_seconds, p85_seconds } = forecast({ completions: steady, now }, 30)!;
    expect(rate_per_hour).toBeCloseTo(60, 0);
    expect(p50_seconds / 60).toBeGreaterThan(26);
    expect(p85_seconds / 60).toBeLessThan(36);
    expect(p85_seconds).toBeGreaterThanOrEqual(p50_seconds);
  });

  test('is less certain when work comes in bursts', () => {
    const bursts = Array.from({ length: 61 }, (_, at) => now - Math.floor(at / 20) * 20 * MINUTE - (at % 20) * 100);
    const even = forecast({ completions: steady, now }, 30)!;
    const uneven = forecast({ completions: bursts, now }, 30)!;
    const spread = (one: typeof even) => one.p85_seconds - one.p50_seconds;
    expect(spread(uneven)).toBeGreaterThan(2 * spread(even));
  });

  test('takes longer when nothing has been done for a while', () => {
    const idle = forecast({ completions: steady, now: now + 50 * MINUTE }, 30)!;
    expect(idle.p50_seconds).toBeGreaterThan(1.4 * forecast({ completions: steady, now }, 30)!.p50_seconds);
  });

  test('is not guessed at from too little, too long ago, or from one moment', () => {
    expect(forecast({ completions: steady.slice(0, 4), now }, 30)).toBeUndefined();
    expect(forecast({ completions: steady, now: now + 200 * MINUTE }, 30)).toBeUndefined();
    expect(forecast({ completions: Array.from({ length: 9 }, () => now), now }, 30)).toBeUndefined();
    expect(forecast({ completions: [], now }, 30)).toBeUndefined();
  });

  test('is told alike each time it is asked', () => {
    expect(forecast({ completions: steady, now }, 30)).toEqual(forecast({ completions: steady, now }, 30));
  });
});

test('any history: the safer guess is the later one, and both come to an end', () => {
  const history = fc.array(fc.integer({ min: now - 110 * MINUTE, max: now + MINUTE }), { maxLength: 300 });
  fc.assert(
    fc.property(history, fc.integer({ min: 1, max: 100_000 }), (completions, remaining) => {
      const found = forecast({ completions, now }, remaining);
      if (!found) return;
      expect(found.p50_seconds).toBeGreaterThanOrEqual(0);
      expect(found.p85_seconds).toBeGreaterThanOrEqual(found.p50_seconds);
      expect(Number.isFinite(found.p85_seconds)).toBe(true);
    }),
    { numRuns: 200 },
  );
});
