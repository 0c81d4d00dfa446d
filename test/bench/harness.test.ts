import { describe, expect, test } from 'vitest';
import { interleaved, median, metric } from '../../bench/harness.ts';

describe('a figure', () => {
  test('is the median: one slow round does not move it', () => {
    expect(median([3, 1, 900])).toBe(3);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  test('is judged by its value', () => {
    const judged = { name: 'start', unit: 'ms', bar: { of: 'value', atMost: 10 } } as const;
    expect(metric({ ...judged, samples: [9, 10, 11] })).toEqual({
      name: 'start',
      value: 10,
      unit: 'ms',
      bar: 'value <= 10',
      ok: true,
    });
    expect(metric({ ...judged, samples: [11] }).ok).toBe(false);
  });

  test('is judged by its ratio to the floor, measured in the same run', () => {
    const measured = { name: 'command', unit: 'ms', samples: [30], floor: [20] };
    expect(metric({ ...measured, bar: { of: 'ratio', atMost: 2 } })).toMatchObject({ floor: 20, ratio: 1.5, ok: true });
    expect(metric({ ...measured, bar: { of: 'ratio', atLeast: 2 } })).toMatchObject({ bar: 'ratio >= 2', ok: false });
  });

  test('is compared with the best of its peers where there is no floor', () => {
    const peers = { slow: [10], quick: [40] };
    const { ratio, ok } = metric({
      name: 'claims',
      unit: '1/s',
      samples: [80],
      peers,
      bar: { of: 'ratio', atLeast: 1 },
    });
    expect({ ratio, ok }).toEqual({ ratio: 2, ok: true });
  });

  test('that could not be measured has not met its bar', () => {
    expect(metric({ name: 'none', unit: 'ms', samples: [], bar: { of: 'value', atMost: 1 } }).ok).toBe(false);
    expect(metric({ name: 'none', unit: 'ms', samples: [1], bar: { of: 'ratio', atLeast: 1 } }).ok).toBe(false);
  });
});

test('candidates take turns, each round in another order, and a first round does not count', async () => {
  const turns: string[] = [];
  const candidate = (name: string) => async () => turns.push(name);
  const { a, b } = await interleaved(1, { a: candidate('a'), b: candidate('b') });

  expect(turns.join('')).toBe(`ab${'ab'}${'ba'}${'ab'}`);
  // At least three rounds, whatever is asked for.
  expect(a).toEqual([3, 6, 7]);
  expect(b).toEqual([4, 5, 8]);
});
