import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { LockChannels } from '../../../src/coordinator/locks/channels.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { Waiter } from '../../../src/coordinator/locks/waiter.ts';
import type { TestChild } from '../../support/child.ts';
import { until } from '../../support/until.ts';
import { goOn, ledger, type Order, startAgent } from './agent-process.ts';
import { complaints, mustBeSound } from './invariants.ts';
import { aLockRoom, asks, held, type LockRoom, wanted } from './room.ts';

/** Long enough for a beat on a busy machine, short enough to wait for. */
const LEASE_MS = 900;
const JOB = 'task:t-1';

let room: LockRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  room = await aLockRoom();
  ask = asks(room.locks);
});
afterAll(() => room.stop());
beforeEach(() => room.reset());
afterEach(() => mustBeSound(room));

const order = (agent: string, more: Partial<Order> = {}): Order => ({
  options: room.redis.options,
  agent,
  lock: JOB,
  leaseMs: LEASE_MS,
  ...more,
});
const waiter = () => new Waiter({ locks: room.locks, channels: new LockChannels(room.connection), clock: systemClock });
const bobWaits = () => waiter().acquire({ agent: 'bob', lockId: 'bob-1', locks: wanted(JOB), waitMs: 20_000 });

test('a holder that is killed loses the lock with its lease, and its end is told once, whoever sweeps', async () => {
  await using ann = startAgent('holds', order('ann'));
  const { token } = (await ann.next()) as { token: number };
  const waiting = bobWaits();
  await until('bob stands in line', async () => (await room.locks.inspect(wanted(JOB)[0]!.lock)).waiters.length === 1);
  await ann.kill('SIGKILL');
  const [bob] = await Promise.all([waiting, ...Array.from({ length: 5 }, () => sweepOnce(room.locks))]);
  expect(bob).toMatchObject({ outcome: 'granted', grants: [{ token: expect.any(Number) }] });
  if (bob.outcome === 'granted') expect(bob.grants[0]?.token).toBeGreaterThan(token);
  await sweepOnce(room.locks);
  expect((await room.told()).filter((line) => line.startsWith('expired'))).toEqual([`expired ${JOB} ann`]);
});

test('a holder that was stopped past its lease learns it when it goes on, and can neither beat, release nor write', async () => {
  await using ann = startAgent('holds', order('ann'));
  const { token } = (await ann.next()) as { token: number };
  process.kill(ann.pid, 'SIGSTOP');
  const bob = await bobWaits();
  expect(bob).toMatchObject({ outcome: 'granted' });
  const newer = bob.outcome === 'granted' ? bob.grants[0]!.token : 0;
  expect(newer).toBeGreaterThan(token);
  const book = ledger({ options: room.redis.options });
  await book.write('bob-1', await book.read(newer), newer, true);
  const before = await room.redis.client().hgetall('ade:lock:task:t-1');

  goOn(ann);
  expect(await ann.next()).toEqual({ why: 'LOCK_LOST', beat: 'lost', release: 'lost', isWritten: false });
  expect(await room.redis.client().hgetall('ade:lock:task:t-1')).toEqual(before);
  expect(await book.entries()).toEqual(['bob-1']);
  expect(await room.locks.release(held('bob', JOB))).toMatchObject([{ outcome: 'released' }]);
  book.close();
});

test('a waiter that is killed at the head holds nobody up for longer than it may be silent', async () => {
  await ask('ann', JOB);
  await using bob = startAgent('waits', order('bob', { waitMs: 60_000 }));
  expect(await bob.next()).toEqual({ outcome: 'queued' });
  expect(await ask('cyd', JOB, { waitMs: 60_000 })).toMatchObject({ outcome: 'queued', position: 2 });
  await bob.kill('SIGKILL');
  await room.locks.release(held('ann', JOB));
  expect(await ask('cyd', JOB, { waitMs: 60_000 })).toMatchObject({ outcome: 'queued', position: 2 });
  room.pass(9_000);
  await ask('cyd', JOB, { waitMs: 60_000 });
  room.pass(1_001);
  expect(await ask('cyd', JOB, { waitMs: 60_000 })).toMatchObject({ outcome: 'granted' });
  expect(await room.redis.client().zcard('ade:lock:task:t-1:queue')).toBe(0);
});

/**
 * Three processes read, think and write back under the lock. Every other time one is stopped in between until another
 * has read, too; so its lease is over and it does not know. Answers how many writes that were accepted are gone.
 */
describe('a list that is read, changed and written back by processes that are stopped in between', () => {
  const ROUNDS = ['is stopped', 'goes on', 'is stopped'] as const;
  const NAMES = ['ann', 'bob', 'cyd'] as const;

  async function undone(checks: boolean): Promise<{ readonly lost: number; readonly refused: number }> {
    const more = { leaseMs: 300, waitMs: 60_000, rounds: ROUNDS, checks };
    const agents = new Set(NAMES.map((name) => startAgent('writes', order(name, more))));
    const stopped = new Set<TestChild>();
    const accepted: string[] = [];
    let refused = 0;
    const wake = (except?: TestChild) => {
      for (const one of stopped) {
        if (one === except) continue;
        stopped.delete(one);
        // It says so just before it stops: told to go on in between, it would stop for ever.
        void until('it has stopped', () => isStopped(one.pid)).then(() => goOn(one));
      }
    };
    await Promise.all(
      [...agents].map(async (agent) => {
        for (;;) {
          const word = (await agent.next()) as Said;
          if (word.saw) {
            if (word.isStopped) stopped.add(agent);
            wake(agent);
          }
          if (word.wrote && word.isAccepted) accepted.push(word.wrote);
          refused += Number(word.isAccepted === false);
          if (word.ended) agents.delete(agent);
          // Nobody is left who could read meanwhile.
          if (agents.size === stopped.size) wake();
          if (word.ended) return agent[Symbol.asyncDispose]();
        }
      }),
    );
    const book = ledger({ options: room.redis.options });
    const entries = await book.entries();
    book.close();
    return { lost: accepted.filter((entry) => !entries.includes(entry)).length, refused };
  }

  test('loses what others wrote where nobody checks the token', async () => {
    expect(await undone(false)).toMatchObject({ lost: expect.toSatisfy((lost: number) => lost > 0), refused: 0 });
  });

  test('never loses any where it is checked', async () => {
    expect(await undone(true)).toMatchObject({ lost: 0, refused: expect.toSatisfy((n: number) => n > 0) });
    room.pass(60_000);
    await sweepOnce(room.locks);
    expect(await complaints(room, true)).toEqual([]);
  });
});

const isStopped = (pid: number) =>
  execFileSync('ps', ['-o', 'state=', '-p', `${pid}`], { encoding: 'utf8' }).startsWith('T');

interface Said {
  readonly saw?: number;
  readonly isStopped?: boolean;
  readonly wrote?: string;
  readonly isAccepted?: boolean;
  readonly ended?: boolean;
}
