import { expect, test } from 'vitest';
import { type Beat, keepAlive } from '../../../src/coordinator/locks/heartbeat.ts';
import { fakeClock } from '../../support/clock.ts';

function aKeptLock(beat: Beat, { leaseMs = 30_000, intervalMs = 10_000 } = {}) {
  const clock = fakeClock();
  const troubles: unknown[] = [];
  const onTrouble = (error: unknown) => troubles.push(error);
  const held = { lock: 'task:T-1', lockId: 'g1', agent: 'ann' };
  const kept = keepAlive({ beat, ...held, leaseMs, intervalMs, clock, onTrouble });
  return { clock, kept, troubles };
}

test('beats at the interval for as long as it is held', async () => {
  let beats = 0;
  const { clock, kept } = aKeptLock(async () => {
    beats += 1;
    return { outcome: 'extended', leaseMs: 30_000 };
  });
  await clock.advance(100_000);
  expect(beats).toBe(10);
  expect(kept.signal.aborted).toBe(false);
  await kept.stop();
  await clock.advance(100_000);
  expect(beats).toBe(10);
});

test('stops the work when the lock is lost, and says which', async () => {
  const { clock, kept } = aKeptLock(async () => ({ outcome: 'lost' }));
  await clock.advance(10_000);
  expect(kept.signal.aborted).toBe(true);
  expect(kept.signal.reason).toMatchObject({ code: 'LOCK_LOST', details: { lock: 'task:T-1', lockId: 'g1' } });
});

test('a beat that fails is tried again sooner, and one that then succeeds keeps the lock', async () => {
  let tries = 0;
  const { clock, kept, troubles } = aKeptLock(async () => {
    tries += 1;
    if (tries <= 3) throw new Error('no route');
    return { outcome: 'extended', leaseMs: 30_000 };
  });
  await clock.advance(20_000);
  expect(troubles).toHaveLength(3);
  expect(kept.signal.aborted).toBe(false);
  await kept.stop();
});

test('when nobody answers for a whole lease the work stops, not later', async () => {
  const { clock, kept } = aKeptLock(() => Promise.reject(new Error('no route')));
  await clock.advance(29_999);
  expect(kept.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(kept.signal.aborted).toBe(true);
});

test('a beat that hangs does not outlast the lease', async () => {
  const { clock, kept } = aKeptLock(() => new Promise(() => {}));
  await clock.advance(30_000);
  expect(kept.signal.aborted).toBe(true);
});

test('an interval longer than the lease is shortened: three beats fit into a lease', async () => {
  let beats = 0;
  const beat: Beat = async () => {
    beats += 1;
    return { outcome: 'extended', leaseMs: 3_000 };
  };
  const { clock, kept } = aKeptLock(beat, { leaseMs: 3_000, intervalMs: 60_000 });
  await clock.advance(30_000);
  expect(beats).toBe(30);
  expect(kept.signal.aborted).toBe(false);
  await kept.stop();
});

test('stopping while a beat is under way waits for nothing but its end', async () => {
  const { clock, kept } = aKeptLock(
    (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone')))),
  );
  await clock.advance(10_000);
  await kept.stop();
  expect(kept.signal.aborted).toBe(false);
});
