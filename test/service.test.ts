import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jittered } from '../src/clock.ts';
import { reason } from '../src/errors.ts';
import { every, group, type Service, service } from '../src/service.ts';
import { fakeClock } from './support/clock.ts';

/** A part that writes down its life, and how many of it live at once. */
function aPart(name: string, diary: string[], { startFails = false, stopFails = false } = {}): Service {
  return service(name, async () => {
    await setImmediate();
    if (startFails) throw new Error(`${name} does not start`);
    diary.push(`${name} up`);
    return async () => {
      await setImmediate();
      diary.push(`${name} down`);
      if (stopFails) throw new Error(`${name} does not stop`);
    };
  });
}

describe('a service', () => {
  test('has one life, however often it is started and stopped', async () => {
    const diary: string[] = [];
    const part = aPart('it', diary);
    await part.stop();
    await Promise.all([part.start(), part.start()]);
    await part.start();
    expect(diary).toEqual(['it up']);
    await Promise.all([part.stop(), part.stop()]);
    await part.stop();
    expect(diary).toEqual(['it up', 'it down']);
    await part.start();
    expect(diary).toEqual(['it up', 'it down', 'it up']);
  });

  test('is stopped only after its start is through', async () => {
    const diary: string[] = [];
    const part = aPart('it', diary);
    await Promise.all([part.start(), part.stop(), part.start(), part.stop()]);
    expect(diary).toEqual(['it up', 'it down', 'it up', 'it down']);
  });

  test('can be started again after a start that failed', async () => {
    let attempts = 0;
    const part = service('moody', async () => {
      attempts += 1;
      if (attempts === 1) throw new Error('not today');
      return undefined;
    });
    await expect(part.start()).rejects.toThrow('not today');
    await part.start();
    expect(attempts).toBe(2);
  });

  test('can be started again after a stop that failed', async () => {
    const diary: string[] = [];
    const part = aPart('it', diary, { stopFails: true });
    await part.start();
    await expect(part.stop()).rejects.toThrow('it does not stop');
    await part.start();
    expect(diary).toEqual(['it up', 'it down', 'it up']);
  });

  test.each([
    ['the moment after it began', () => Promise.resolve()],
    ['long after it began', () => setImmediate()],
  ])('gives up a long start that is stopped %s', async (_, pause) => {
    const clock = fakeClock();
    const part = service('slow', async (signal) => {
      await clock.sleep(3_600_000, signal);
      signal.throwIfAborted();
      return undefined;
    });
    const outcome = part.start().catch(reason);
    await pause();
    await part.stop();
    expect(await outcome).toMatch('aborted');
    expect(clock.sleepers).toBe(0);
  });

  test('gives up a start that is stopped in the same breath', async () => {
    const clock = fakeClock();
    const part = service('slow', async (signal) => clock.sleep(3_600_000, signal).then(() => undefined));
    const start = part.start();
    await part.stop();
    await start;
    expect(clock.sleepers).toBe(0);
  });

  test('tears down what a start left behind that did not heed its signal', async () => {
    const diary: string[] = [];
    const ready = Promise.withResolvers<void>();
    const part = service('stubborn', async () => {
      await ready.promise;
      return () => void diary.push('down');
    });
    const start = part.start();
    await setImmediate();
    const stop = part.stop();
    ready.resolve();
    await Promise.all([start, stop]);
    expect(diary).toEqual(['down']);
  });

  test('aborts its signal when it is stopped, before it is torn down', async () => {
    let wasAborted: boolean | undefined;
    const part = service('it', async (signal) => () => {
      wasAborted = signal.aborted;
    });
    await part.start();
    await part.stop();
    expect(wasAborted).toBe(true);
  });

  test('never has two lives at once under 500 crossed calls', async () => {
    let lives = 0;
    let most = 0;
    let random = 1;
    const chance = () => {
      random = (random * 48_271) % 2_147_483_647;
      return random / 2_147_483_647;
    };
    const part = service('hunted', async (signal) => {
      lives += 1;
      most = Math.max(most, lives);
      if (chance() < 0.5) await setImmediate();
      if (chance() < 0.1 || signal.aborted) {
        lives -= 1;
        throw new Error('this start fails');
      }
      return async () => {
        if (chance() < 0.5) await setImmediate();
        lives -= 1;
        if (chance() < 0.1) throw new Error('this stop fails');
      };
    });
    const calls: Promise<void>[] = [];
    for (let call = 0; call < 500; call += 1) {
      calls.push((chance() < 0.5 ? part.start() : part.stop()).catch(() => {}));
      if (chance() < 0.3) await setImmediate();
    }
    await Promise.all(calls);
    await part.stop().catch(() => {});
    expect(most).toBe(1);
    expect(lives).toBe(0);
  });
});

describe('a group', () => {
  test('starts in order and stops in reverse', async () => {
    const diary: string[] = [];
    const whole = group('all', [aPart('a', diary), aPart('b', diary), aPart('c', diary)]);
    await whole.start();
    await whole.stop();
    expect(diary).toEqual(['a up', 'b up', 'c up', 'c down', 'b down', 'a down']);
  });

  test('unwinds what had started when one fails to start, and says why', async () => {
    const diary: string[] = [];
    const parts = [aPart('a', diary), aPart('b', diary), aPart('c', diary, { startFails: true }), aPart('d', diary)];
    await expect(group('all', parts).start()).rejects.toThrow('c does not start');
    expect(diary).toEqual(['a up', 'b up', 'b down', 'a down']);
  });

  test('still reports the failed start when the unwinding fails too', async () => {
    const diary: string[] = [];
    const also: unknown[] = [];
    const parts = [aPart('a', diary, { stopFails: true }), aPart('b', diary, { startFails: true })];
    const whole = group('all', parts, { unwindFailed: (error) => also.push(error) });
    await expect(whole.start()).rejects.toThrow('b does not start');
    expect(also).toEqual([expect.objectContaining({ errors: [new Error('a does not stop')] })]);
  });

  test('stops all the others when one fails to stop, and tells of each failure', async () => {
    const diary: string[] = [];
    const parts = [aPart('a', diary), aPart('b', diary, { stopFails: true }), aPart('c', diary, { stopFails: true })];
    const whole = group('all', parts);
    await whole.start();
    await expect(whole.stop()).rejects.toMatchObject({
      message: 'all: 2 part(s) did not stop cleanly',
      errors: [new Error('c does not stop'), new Error('b does not stop')],
    });
    expect(diary.slice(3)).toEqual(['c down', 'b down', 'a down']);
  });

  test('gives up the part that is starting when it is stopped, and starts no more', async () => {
    const diary: string[] = [];
    const clock = fakeClock();
    const slow = service('slow', async (signal) => {
      diary.push('slow begins');
      await clock.sleep(3_600_000, signal);
      signal.throwIfAborted();
      return undefined;
    });
    const whole = group('all', [aPart('a', diary), slow, aPart('c', diary)]);
    const outcome = whole.start().catch(reason);
    await clock.asleep();
    await whole.stop();
    expect(await outcome).toMatch('aborted');
    expect(diary).toEqual(['a up', 'slow begins', 'a down']);
  });

  test('says which part it is starting and stopping', async () => {
    const said: string[] = [];
    const whole = group('all', [aPart('a', []), aPart('b', [])], {
      starting: (member) => said.push(`starting ${member}`),
      stopping: (member) => said.push(`stopping ${member}`),
    });
    await whole.start();
    await whole.stop();
    expect(said).toEqual(['starting a', 'starting b', 'stopping b', 'stopping a']);
  });

  test('leaves every part down after any crossing of calls, with any part failing', async () => {
    const flaws = fc.record({ startFails: fc.boolean(), stopFails: fc.boolean() });
    const calls = fc.array(fc.constantFrom('start' as const, 'stop' as const), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.array(flaws, { maxLength: 4 }), calls, async (parts, crossed) => {
        const diary: string[] = [];
        const whole = group(
          'all',
          parts.map((flaw, index) => aPart(String(index), diary, flaw)),
        );
        await Promise.allSettled(crossed.map((call) => whole[call]()));
        await whole.stop().catch(() => {});
        const up = new Set<string>();
        for (const entry of diary) {
          const [name = '', what] = entry.split(' ');
          expect(up.has(name)).toBe(what === 'down');
          if (what === 'up') up.add(name);
          else up.delete(name);
        }
        expect([...up]).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

describe('a loop', () => {
  const onError = (error: unknown) => expect.unreachable(String(error));

  test('ticks at once, then after each pause', async () => {
    const clock = fakeClock(0);
    const ticks: number[] = [];
    const loop = every('beat', { clock, pauseMs: () => 100, tick: async () => void ticks.push(clock.now()), onError });
    await loop.start();
    await clock.advance(350);
    await loop.stop();
    await clock.advance(1_000);
    expect(ticks).toEqual([0, 100, 200, 300]);
  });

  test('falls together with other loops that pause for long, but for those that wait for something', async () => {
    const clock = fakeClock();
    const ticks: Record<string, number[]> = { one: [], other: [], exact: [] };
    const loop = (name: string, pauseMs: () => number, isExact = false) =>
      every(name, { clock, pauseMs, isExact, tick: async () => void ticks[name]!.push(clock.now()), onError });
    const loops = [
      loop('one', () => jittered(1_000)),
      loop('other', () => jittered(500)),
      loop('exact', () => 730, true),
    ];
    for (const each of loops) {
      await each.start();
      await clock.advance(137);
    }
    await clock.advance(60_000);
    for (const each of loops) await each.stop();

    const { one, other, exact } = ticks as Record<'one' | 'other' | 'exact', number[]>;
    expect(one.slice(1).filter((at) => !other.includes(at))).toEqual([]);
    expect(one.length).toBeGreaterThan(55);
    expect(new Set(exact.slice(1).map((at, n) => at - exact[n]!))).toEqual(new Set([730]));
  });

  test('asks for its pause anew each time, so that it can back off', async () => {
    const clock = fakeClock(0);
    const ticks: number[] = [];
    const tick = async () => void ticks.push(clock.now());
    const loop = every('beat', { clock, pauseMs: () => 2 ** ticks.length, tick, onError });
    await loop.start();
    await clock.advance(20);
    await loop.stop();
    expect(ticks).toEqual([0, 2, 6, 14]);
  });

  test('survives a tick that fails, and reports it', async () => {
    const clock = fakeClock();
    const reported: unknown[] = [];
    let ticks = 0;
    const tick = (): Promise<void> => {
      ticks += 1;
      if (ticks === 1) throw new Error('fails before it returns a promise');
      return ticks === 2 ? Promise.reject(new Error('fails later')) : Promise.resolve();
    };
    const loop = every('beat', { clock, pauseMs: () => 10, tick, onError: (error) => reported.push(error) });
    await loop.start();
    await clock.advance(25);
    await loop.stop();
    expect(ticks).toBe(3);
    expect(reported.map(String)).toEqual(['Error: fails before it returns a promise', 'Error: fails later']);
  });

  test('stops only when the tick in hand is done, and tells that tick to hurry', async () => {
    const clock = fakeClock();
    const work = Promise.withResolvers<void>();
    let told = false;
    let isStopped = false;
    const tick = async (signal: AbortSignal) => {
      signal.addEventListener('abort', () => {
        told = true;
      });
      await work.promise;
    };
    const loop = every('beat', { clock, pauseMs: () => 10, tick, onError });
    await loop.start();
    const stop = loop.stop().then(() => {
      isStopped = true;
    });
    await setImmediate();
    expect({ told, isStopped }).toEqual({ told: true, isStopped: false });
    work.resolve();
    await stop;
    expect(clock.sleepers).toBe(0);
  });

  test('never runs two ticks at once, even when a tick takes longer than the pause', async () => {
    const clock = fakeClock();
    let running = 0;
    let most = 0;
    const tick = async (signal: AbortSignal) => {
      running += 1;
      most = Math.max(most, running);
      await clock.sleep(50, signal);
      running -= 1;
    };
    const loop = every('beat', { clock, pauseMs: () => 1, tick, onError });
    await loop.start();
    await clock.advance(500);
    await loop.stop();
    expect(most).toBe(1);
  });
});
