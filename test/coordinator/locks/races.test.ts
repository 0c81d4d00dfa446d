import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { Locks } from '../../../src/coordinator/locks/locks.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { ReeveError } from '../../../src/errors.ts';
import type { Scripts } from '../../../src/redis/script.ts';
import { complaints } from './invariants.ts';
import { aLockRoom, held, type LockRoom, wanted } from './room.ts';

/** More of them: LOCK_RUNS=1000 npx vitest run test/coordinator/locks/races.test.ts */
const RUNS = Number(process.env.LOCK_RUNS ?? 25);
const JOB = 'task:t-1';
const AGENTS = ['ann', 'bob', 'cyd'] as const;
const ROUNDS = 2;
/** Long enough for another to get the lock, write and give it back. */
const PAUSE = 20;

let room: LockRoom;
beforeAll(async () => {
  room = await aLockRoom();
});
afterAll(() => room.stop());

/**
 * A network whose every message the scheduler delivers when it likes: the request to the server and the reply to the
 * client are two messages, and a reply may be lost, after which the caller sends the same request again.
 */
function network(scheduler: fc.Scheduler, isLost: () => boolean): Locks {
  const scripts: Scripts = {
    run: async (script, keys, args) => {
      await scheduler.schedule(Promise.resolve(), `request ${script.name}`);
      const reply = await room.scripts.run(script, keys, args);
      await scheduler.schedule(Promise.resolve(), `reply ${script.name}`);
      if (isLost()) throw new ReeveError('REDIS_REPLY_UNKNOWN', { address: 'test' });
      return reply;
    },
  };
  const { connection, events } = room;
  return new Locks({ connection, keyspace: { mode: 'standalone' }, scripts, events, limits: () => room.limits });
}

/** Every call is made until it is answered; each is the same request. */
async function sure<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ReeveError && error.code === 'REDIS_REPLY_UNKNOWN')) throw error;
    }
  }
}

const losses = fc.infiniteStream(fc.nat({ max: 5 })).map((stream) => () => stream.next().value === 0);

test('one holder at a time, tokens that rise and everyone served, however requests and replies are delivered or lost', async () => {
  const property = fc.asyncProperty(fc.scheduler(), losses, async (scheduler, isLost) => {
    await room.reset();
    const locks = network(scheduler, isLost);
    const inside = new Set<string>();
    const tokens: number[] = [];
    const agent = async (name: string) => {
      for (let round = 0; round < ROUNDS; round++) {
        const lockId = `${name}-${round}`;
        const ask = () => locks.acquire({ agent: name, lockId, locks: wanted(JOB), waitMs: 600_000 });
        let outcome = await sure(ask);
        while (outcome.outcome === 'queued') outcome = await sure(ask);
        expect(outcome).toMatchObject({ outcome: 'granted' });
        expect(inside.size).toBe(0);
        inside.add(name);
        tokens.push(outcome.outcome === 'granted' ? (outcome.grants[0]?.token ?? 0) : 0);
        expect(await sure(() => locks.heartbeat(held(name, JOB, lockId)))).toMatchObject({ outcome: 'extended' });
        inside.delete(name);
        const [given] = await sure(() => locks.release(held(name, JOB, lockId)));
        // After others had it, a repeated release finds it lost; it never ends what is not its own.
        expect(['released', 'already', 'lost']).toContain(given?.outcome);
      }
    };
    await scheduler.waitFor(Promise.all(AGENTS.map(agent)));
    expect(tokens).toHaveLength(AGENTS.length * ROUNDS);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
    await sweepOnce(room.locks);
    expect(await complaints(room, true)).toEqual([]);
    expect(await room.redis.client().keys('ade:lock:*')).toEqual(['ade:lock:task:t-1:fence']);
  });
  await fc.assert(property, { numRuns: RUNS });
}, 300_000);

/**
 * What the lock protects: a list that is read, changed and written back. With a check, it serves no token older than one
 * it has seen, be it from a reader or a writer: what a newer holder has read must not change under it.
 */
class Ledger {
  entries: readonly string[] = [];
  #newest = 0;
  readonly #checks: boolean;
  constructor(checks: boolean) {
    this.#checks = checks;
  }
  read(token: number): readonly string[] {
    this.#newest = Math.max(this.#newest, token);
    return this.entries;
  }
  write(entries: readonly string[], token: number): boolean {
    if (this.#checks && token < this.#newest) return false;
    this.entries = entries;
    return true;
  }
}

/** Read, pause, write, under the lock; some pause so long that their lease ends. Answers how many writes were undone. */
async function readModifyWrite(scheduler: fc.Scheduler, isLost: () => boolean, pauses: () => boolean, checks: boolean) {
  await room.reset();
  const locks = network(scheduler, isLost);
  const ledger = new Ledger(checks);
  const accepted: string[] = [];
  const agent = async (name: string) => {
    for (let round = 0; round < ROUNDS; round++) {
      const lockId = `${name}-${round}`;
      const ask = () =>
        locks.acquire({
          agent: name,
          lockId,
          locks: wanted(JOB),
          waitMs: 600_000,
          leaseClass: 'agent',
          leaseMs: 1_000,
        });
      let outcome = await sure(ask);
      while (outcome.outcome === 'queued') outcome = await sure(ask);
      if (outcome.outcome !== 'granted') continue;
      const token = outcome.grants[0]?.token ?? 0;
      const read = ledger.read(token);
      // Lease and grace end, while the holder believes it has both and others go on.
      const isLong = pauses();
      if (isLong) room.pass(121_001);
      for (let n = 0; n < (isLong ? PAUSE : 1); n++) {
        await scheduler.schedule(Promise.resolve(), `${name} pauses`);
        // A round trip: what the others sent before it is answered by then.
        await room.connection.commands.ping();
      }
      if (ledger.write([...read, lockId], token)) accepted.push(lockId);
      await sure(() => locks.release(held(name, JOB, lockId)));
    }
  };
  await scheduler.waitFor(Promise.all(AGENTS.map(agent)));
  return accepted.filter((entry) => !ledger.entries.includes(entry)).length;
}

test('a paused holder undoes the work of others where nobody checks the token, and never where it is checked', async () => {
  let undone = 0;
  const property = fc.asyncProperty(fc.scheduler(), losses, losses, async (scheduler, isLost, pauses) => {
    undone += await readModifyWrite(scheduler, isLost, pauses, false);
  });
  await fc.assert(property, { numRuns: RUNS });
  expect(undone).toBeGreaterThan(0);
  const checked = fc.asyncProperty(fc.scheduler(), losses, losses, async (scheduler, isLost, pauses) => {
    expect(await readModifyWrite(scheduler, isLost, pauses, true)).toBe(0);
  });
  await fc.assert(checked, { numRuns: RUNS });
}, 300_000);

test('a beat and the end of the lease never both win, whichever comes first', async () => {
  const beats = fc.asyncProperty(fc.integer({ min: -3, max: 3 }), async (offsetMs) => {
    await room.reset();
    const lock = parseLock(JOB);
    await room.locks.acquire({ agent: 'ann', lockId: 'a', locks: [{ lock }], leaseMs: 10_000 });
    room.pass(10_000 + offsetMs);
    const [beat, taken] = await Promise.all([
      room.locks.heartbeat(held('ann', JOB, 'a')),
      room.locks.acquire({ agent: 'bob', lockId: 'b', locks: [{ lock }] }),
    ]);
    // Bob may have come to Redis before the end and the beat after it: then nobody has won yet, and bob does now.
    const bob =
      taken.outcome === 'held' ? await room.locks.acquire({ agent: 'bob', lockId: 'b', locks: [{ lock }] }) : taken;
    expect([beat.outcome, bob.outcome]).toEqual(
      beat.outcome === 'extended' ? ['extended', 'held'] : ['lost', 'granted'],
    );
  });
  await fc.assert(beats, { numRuns: RUNS * 4 });
}, 120_000);
