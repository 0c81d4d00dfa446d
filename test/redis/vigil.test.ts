import { describe, expect, test } from 'vitest';
import { Vigil } from '../../src/redis/vigil.ts';

/** One that asks; turns of the event loop pass when they are called for. */
function anAsker() {
  let now = 1_000;
  let next: (() => void) | undefined;
  const vigil = new Vigil({
    clock: { now: () => now, sleep: () => Promise.resolve() },
    inNextTurn: (work) => {
      expect(next, 'one turn at a time').toBeUndefined();
      next = work;
    },
  });
  const isAwake = () => next !== undefined;
  const turn = () => {
    const work = next;
    next = undefined;
    work?.();
  };
  const ask = (afterMs = 0) => {
    now += afterMs;
    const command = { isSettled: false };
    vigil.begin(command);
    return { answer: () => Object.assign(command, { isSettled: true }) };
  };
  const turnsUntilAsleep = () => {
    let turns = 0;
    for (; isAwake(); turns++) turn();
    return turns;
  };
  /** In vain each time: the answers come long after it fell asleep. Whether it stayed awake for each. */
  const askSlow = (times: number) =>
    Array.from({ length: times }, () => {
      const { answer } = ask(1);
      const waited = isAwake();
      turnsUntilAsleep();
      answer();
      return waited;
    });
  return { ask, askSlow, turn, isAwake, turnsUntilAsleep };
}

describe('who asks one thing after the other', () => {
  test('stays awake until the answer is there', () => {
    const { ask, turn, isAwake } = anAsker();
    ask().answer();
    const { answer } = ask(1);
    for (let turns = 0; turns < 10; turns++) turn();
    expect(isAwake()).toBe(true);

    answer();
    turn();

    expect(isAwake()).toBe(false);
  });

  test('stays awake for the next answer where that is asked for at once, and for as long as for the first', () => {
    const { ask, turn, turnsUntilAsleep } = anAsker();
    ask().answer();
    const first = ask(1);
    for (let turns = 0; turns < 40; turns++) turn();
    first.answer();
    ask();

    expect(turnsUntilAsleep()).toBeGreaterThan(40);
  });

  test('falls asleep when the answer does not come', () => {
    const { ask, turnsUntilAsleep } = anAsker();
    ask().answer();
    ask(1);

    expect(turnsUntilAsleep()).toBeLessThan(200);
  });

  test('tries it ever less often where it is always in vain', () => {
    const { ask, askSlow } = anAsker();
    ask().answer();
    const tries = askSlow(5_000).filter(Boolean).length;

    expect(tries).toBeGreaterThan(8);
    expect(tries).toBeLessThan(16);
  });

  test('stays awake for every answer again after one that came soon', () => {
    const { ask, askSlow, turn, isAwake } = anAsker();
    ask().answer();
    askSlow(20);
    let quick = ask(1);
    for (let asked = 0; asked < 100 && !isAwake(); asked++) quick = ask(1);
    quick.answer();
    turn();

    ask(1);

    expect(isAwake()).toBe(true);
  });
});

test('who asks now and then falls asleep at once', () => {
  const { ask, isAwake } = anAsker();
  for (let asked = 0; asked < 10; asked++) {
    const { answer } = ask(50);
    expect(isAwake()).toBe(false);
    answer();
  }
});
