import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { OwedReplies } from '../../src/redis/owed-replies.ts';

/** A connection whose time passes look by look, a quarter of its patience each. */
function aConnection() {
  const looks: (() => void)[] = [];
  const state = { received: 0, givenUp: 0 };
  const owed = new OwedReplies({
    clock: {
      now: () => 0,
      sleep: (_, signal) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        looks.push(resolve);
        signal?.addEventListener('abort', () => resolve());
        return promise;
      },
    },
    patienceMs: 400,
    received: () => state.received,
    giveUp: () => {
      state.givenUp++;
    },
  });
  const send = () => {
    const command = { isSettled: false, failure: '', reject: (error: Error) => settle(error.message) };
    const settle = (failure: string) => Object.assign(command, { isSettled: true, failure });
    owed.add(command);
    return Object.assign(command, {
      answer: () => {
        state.received++;
        settle('');
      },
    });
  };
  const look = async (times = 1) => {
    for (let time = 0; time < times; time++) {
      looks.shift()?.();
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    }
  };
  return { owed, send, look, looks, state };
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}

describe('a command whose reply is owed', () => {
  test('has its whole time, then fails, and the connection on which nothing moved is given up', async () => {
    const { send, look, state } = aConnection();
    const command = send();
    await look(4);
    expect(command.isSettled).toBe(false);

    await look();

    expect(command.failure).toBe('Command timed out');
    expect(state.givenUp).toBe(1);
  });

  test('fails alone where others are answered meanwhile', async () => {
    const { send, look, state } = aConnection();
    const stuck = send();
    await look(3);
    send().answer();
    await look(2);

    expect(stuck.failure).toBe('Command timed out');
    expect(state.givenUp).toBe(0);
  });

  test('that came later fails later', async () => {
    const { send, look } = aConnection();
    send();
    await look(2);
    const later = send();
    await look(4);
    expect(later.isSettled).toBe(false);

    await look();

    expect(later.failure).toBe('Command timed out');
  });

  test('is looked after again when all before it were answered long ago', async () => {
    const { send, look, looks, state } = aConnection();
    for (let round = 0; round < 3_000; round++) send().answer();
    await look();
    expect(looks).toHaveLength(0);
    const command = send();
    await look(5);

    expect(command.failure).toBe('Command timed out');
    expect(state.givenUp).toBe(1);
  });

  test('and has come is not kept: a reply may be large', async () => {
    const { owed, send } = aConnection();
    const answered = (() => {
      const command = { isSettled: false, reject: () => {} };
      owed.add(command);
      command.isSettled = true;
      return new WeakRef(command);
    })();
    send();
    // Until the turn ends that made it, a weak reference is a strong one.
    await nextTurn();
    collectGarbage();

    expect(answered.deref()).toBeUndefined();
  });

  test('is let go when the connection ends', async () => {
    const { owed, send, look, looks } = aConnection();
    const command = send();
    owed.close();
    await look(9);

    expect(command.isSettled).toBe(false);
    expect(looks).toHaveLength(0);
  });
});
