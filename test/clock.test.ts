import { getEventListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backOff, isoTime, jittered, systemClock, withDeadline } from '../src/clock.ts';
import { reason } from '../src/errors.ts';
import { fakeClock } from './support/clock.ts';

/** Longer than any test may take: a sleep of this length ends only because something ended it. */
const AN_HOUR = 3_600_000;
const late = () => new Error('too late');

describe('the clock of the machine', () => {
  test('wakes a sleeper after its time, not before', async () => {
    const before = performance.now();
    await systemClock.sleep(20);
    // Timers count whole milliseconds, so a sleep may seem a fraction of one short.
    expect(performance.now() - before).toBeGreaterThan(18);
  });

  test('wakes a sleeper at once when its signal is aborted, without an error', async () => {
    const nap = new AbortController();
    const slept = systemClock.sleep(AN_HOUR, nap.signal);
    nap.abort();
    await expect(slept).resolves.toBeUndefined();
  });

  test('does not sleep at all on a signal that is aborted already', async () => {
    await expect(systemClock.sleep(AN_HOUR, AbortSignal.abort())).resolves.toBeUndefined();
  });

  test('leaves no listener on the signal and no timer behind, however a sleep ends', async () => {
    const nap = new AbortController();
    const listeners = () => getEventListeners(nap.signal, 'abort').length;
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    await systemClock.sleep(1, nap.signal);
    expect(listeners()).toBe(0);
    const slept = systemClock.sleep(AN_HOUR, nap.signal);
    nap.abort();
    await slept;
    expect(listeners()).toBe(0);
    expect(timers()).toBe(before);
  });

  test('tells the time in UTC, as the keys store it', () => {
    expect(isoTime(fakeClock(Date.UTC(2026, 1, 3, 4, 5, 6, 7)))).toBe('2026-02-03T04:05:06.007Z');
  });
});

describe('a deadline', () => {
  test('lets work through that is done in time, and leaves nothing waiting', async () => {
    const clock = fakeClock();
    await expect(withDeadline(clock, 100, Promise.resolve('done'), late)).resolves.toBe('done');
    expect(clock.sleepers).toBe(0);
  });

  test('fails work that is not', async () => {
    const clock = fakeClock();
    const outcome = withDeadline(clock, 100, new Promise(() => {}), late).catch(reason);
    await clock.advance(99);
    expect(clock.sleepers).toBe(1);
    await clock.advance(1);
    expect(await outcome).toBe('too late');
  });

  test('passes on the failure of the work itself', async () => {
    const clock = fakeClock();
    const broken = Promise.reject(new Error('broken'));
    await expect(withDeadline(clock, 100, broken, late)).rejects.toThrow('broken');
    expect(clock.sleepers).toBe(0);
  });

  test('says nothing more when work fails after its deadline', async () => {
    const clock = fakeClock();
    const work = Promise.withResolvers<void>();
    const outcome = withDeadline(clock, 100, work.promise, late).catch(reason);
    await clock.advance(100);
    expect(await outcome).toBe('too late');
    work.reject(new Error('nobody listens any more'));
    await setImmediate();
  });
});

describe('jitter and back-off', () => {
  const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  test('jitter stays within a fifth of the period', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: AN_HOUR }), share, (ms, random) => {
        const spread = jittered(ms, () => random);
        expect(spread).toBeGreaterThanOrEqual(Math.floor(ms * 0.8));
        expect(spread).toBeLessThanOrEqual(Math.ceil(ms * 1.2));
      }),
    );
  });

  test('back-off doubles from its base and never goes beyond its maximum and the jitter on it', () => {
    const middle = () => 0.5;
    expect([0, 1, 2, 3, 4, 5].map((attempt) => backOff(attempt, 100, 2_000, middle))).toEqual([
      100, 200, 400, 800, 1_600, 2_000,
    ]);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100_000 }), share, (attempt, random) => {
        const pause = backOff(attempt, 50, 5_000, () => random);
        expect(pause).toBeGreaterThanOrEqual(40);
        expect(pause).toBeLessThanOrEqual(6_000);
      }),
    );
  });
});

describe('the clock that tests move', () => {
  test('wakes sleepers in the order of their deadlines, each at its own moment', async () => {
    const clock = fakeClock(0);
    const woken: [string, number][] = [];
    const nap = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push([name, clock.now()]);
    };
    void nap('late', 30);
    void nap('early', 10).then(() => nap('again', 10));
    await clock.advance(25);
    expect(woken).toEqual([
      ['early', 10],
      ['again', 20],
    ]);
    expect(clock.now()).toBe(25);
    await clock.advance(5);
    expect(woken.at(-1)).toEqual(['late', 30]);
    expect(clock.sleepers).toBe(0);
  });

  test('lets a sleeper be woken by its signal, as the real one does', async () => {
    const clock = fakeClock();
    const nap = new AbortController();
    const slept = clock.sleep(10, nap.signal);
    nap.abort();
    await slept;
    expect(clock.sleepers).toBe(0);
    await clock.sleep(10, nap.signal);
  });
});
