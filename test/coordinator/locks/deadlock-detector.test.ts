import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DeadlockDetector } from '../../../src/coordinator/locks/deadlock-detector.ts';
import { type LockMode, parseLock } from '../../../src/coordinator/locks/lock.ts';
import { Locks } from '../../../src/coordinator/locks/locks.ts';
import { silentLog } from '../../../src/log.ts';
import { aRedisRoom, type RedisRoom } from '../../support/redis-room.ts';

const HEARTBEAT_MS = 10_000;

let room: RedisRoom;
let locks: Locks;
let enabled: boolean;
beforeAll(async () => {
  room = await aRedisRoom();
});
beforeEach(() => {
  enabled = true;
  locks = new Locks({
    ...room,
    limits: () => ({ leaseMs: 600_000, maxLeaseMs: 900_000, depth: 100 }),
  });
});
afterEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

const aDetector = () =>
  new DeadlockDetector({
    locks,
    clock: systemClock,
    log: silentLog,
    isEnabled: async () => enabled,
    confirmMs: async () => HEARTBEAT_MS,
  });

const LEASE_MS = 600_000;
interface Ask {
  readonly mode?: LockMode;
  readonly waitMs?: number;
  readonly lockId?: string;
  readonly queued?: boolean;
}
const ask = (
  agent: string,
  lock: string,
  { mode = 'exclusive', lockId = `${agent}.${lock.replaceAll(':', '.')}`, ...more }: Ask = {},
) =>
  locks.acquire({
    locks: [{ lock: parseLock(lock), mode }],
    agent,
    lockId,
    leaseClass: 'agent',
    leaseMs: LEASE_MS,
    ...more,
  });
const takes = async (agent: string, lock: string, mode?: LockMode) =>
  expect(await ask(agent, lock, mode && { mode })).toMatchObject({ outcome: 'granted' });
const waits = async (agent: string, lock: string, mode?: LockMode) =>
  expect(await ask(agent, lock, { waitMs: LEASE_MS, ...(mode && { mode }) })).toMatchObject({ outcome: 'queued' });

/** A circle of n agents: each holds one resource and waits for the next one's. */
async function aCircle(agents: readonly string[]) {
  for (const agent of agents) await takes(agent, `resource:db:${agent}`);
  for (const [at, agent] of agents.entries()) {
    await waits(agent, `resource:db:${agents[(at + 1) % agents.length]}`);
    room.shift(10);
  }
  room.shift(1_000);
}

/** Suspected, then seen again a heartbeat later. */
async function detect(detector = aDetector()) {
  await detector.detectOnce();
  room.shift(HEARTBEAT_MS);
  return detector.detectOnce();
}

describe('the deadlock detector', () => {
  test.each([2, 3, 5])('breaks a circle of %i: the youngest gives way, the others go on', async (size) => {
    const agents = ['ann', 'bob', 'cyd', 'dan', 'eve'].slice(0, size);
    await aCircle(agents);
    expect(await detect()).toEqual({ suspected: 0, aborted: 1 });

    const youngest = agents.at(-1) as string;
    const told = await ask(youngest, `resource:db:${agents[0]}`, { waitMs: LEASE_MS, queued: true });
    expect(told).toMatchObject({ outcome: 'deadlock' });
    const cycle = told.outcome === 'deadlock' ? (told.cycle as { agent: string }[]) : [];
    expect(new Set(cycle.map(({ agent }) => agent))).toEqual(new Set(agents));
    // What the victim held was given back, so that the one behind it gets it.
    const next = agents.at(-2) as string;
    expect(await ask(next, `resource:db:${youngest}`, { waitMs: LEASE_MS, queued: true })).toMatchObject({
      outcome: 'granted',
    });
    expect(await detect()).toEqual({ suspected: 0, aborted: 0 });
  });

  test('breaks a circle through the order of a line', async () => {
    await takes('a', 'resource:db:x', 'shared');
    await takes('c', 'resource:db:y');
    await waits('b', 'resource:db:x');
    room.shift(10);
    await waits('c', 'resource:db:x', 'shared');
    room.shift(10);
    await waits('a', 'resource:db:y');
    room.shift(1_010);
    expect(await detect()).toEqual({ suspected: 0, aborted: 1 });
    expect(await ask('b', 'resource:db:x', { waitMs: LEASE_MS, queued: true })).toMatchObject({ outcome: 'granted' });
  });

  test('tells of it once, with the victim and the whole circle', async () => {
    await aCircle(['ann', 'bob']);
    await detect();
    const { events } = await room.events.latest({ streams: ['lock'] });
    const told = events.filter(({ event }) => event === 'lock:deadlock');
    expect(told).toHaveLength(1);
    expect(told[0]?.payload).toMatchObject({
      lock: 'resource:db:ann',
      agent_id: 'bob',
      cycle: expect.arrayContaining([
        expect.objectContaining({ agent: 'ann', waits_for: 'resource:db:bob', behind: 'bob', by: 'holder' }),
      ]),
    });
  });

  test('believes nothing that it saw only once, or for less than a heartbeat', async () => {
    await aCircle(['ann', 'bob']);
    const detector = aDetector();
    expect(await detector.detectOnce()).toEqual({ suspected: 1, aborted: 0 });
    room.shift(HEARTBEAT_MS - 1_000);
    expect(await detector.detectOnce()).toEqual({ suspected: 1, aborted: 0 });
  });

  test('a circle with a new request in it is a new one', async () => {
    await aCircle(['ann', 'bob']);
    const detector = aDetector();
    await detector.detectOnce();
    await locks.cancelWait({ locks: [parseLock('resource:db:ann')], agent: 'bob', lockId: 'bob.resource.db.ann' });
    await ask('bob', 'resource:db:ann', { waitMs: LEASE_MS, lockId: 'another' });
    room.shift(HEARTBEAT_MS);
    expect(await detector.detectOnce()).toMatchObject({ aborted: 0 });
  });

  test('waits of less than a second are left alone', async () => {
    await aCircle(['ann', 'bob']);
    room.shift(-1_000);
    expect(await aDetector().detectOnce()).toEqual({ suspected: 0, aborted: 0 });
  });

  test('of two detectors one aborts', async () => {
    await aCircle(['ann', 'bob']);
    const [one, two] = [aDetector(), aDetector()];
    await Promise.all([one.detectOnce(), two.detectOnce()]);
    room.shift(HEARTBEAT_MS);
    const counts = await Promise.all([one.detectOnce(), two.detectOnce()]);
    expect(counts.map(({ aborted }) => aborted)).toEqual(expect.arrayContaining([0, 1]));
  });

  test('who applies a task keeps it, and keeps what it took with it', async () => {
    await locks.acquire({
      locks: [{ lock: parseLock('task:T-1') }, { lock: parseLock('resource:db:bob') }],
      agent: 'bob',
      lockId: 'claim',
      leaseClass: 'agent',
    });
    await takes('bob', 'resource:db:loose');
    await locks.acquire({
      locks: [{ lock: parseLock('task:T-2') }, { lock: parseLock('resource:db:ann') }],
      agent: 'ann',
      lockId: 'claim2',
      leaseClass: 'agent',
    });
    await waits('ann', 'resource:db:bob');
    room.shift(10);
    await waits('bob', 'resource:db:ann');
    // Longer than the second that a wait is left alone.
    room.shift(1_100);
    expect(await detect()).toMatchObject({ aborted: 1 });
    const { locks: left } = await locks.list({ agent: 'bob' });
    expect(left.map(({ name }) => name).toSorted()).toEqual(['resource:db:bob', 'task:T-1']);
  });

  test('switched off it looks at nothing, and switched on again it begins anew', async () => {
    await aCircle(['ann', 'bob']);
    const detector = aDetector();
    await detector.detectOnce();
    enabled = false;
    room.shift(HEARTBEAT_MS);
    expect(await detector.detectOnce()).toEqual({ suspected: 0, aborted: 0 });
    expect((await locks.waitGraph()).length).toBe(2);
  });

  test('the limit of the seed is kept: a time of the last check, for thirty seconds', async () => {
    await aCircle(['ann', 'bob']);
    await aDetector().detectOnce();
    const key = room.keys.deadlockCheck('bob');
    expect(await room.client.get(key)).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(await room.client.ttl(key)).toBeGreaterThan(25);
    expect(await aDetector().detectOnce()).toEqual({ suspected: 0, aborted: 0 });
  });

  test('the victim that asks again keeps its age, so that it is not the youngest for ever', async () => {
    await aCircle(['ann', 'bob']);
    const before = (await locks.waitGraph()).flatMap(({ waiters }) => waiters).find(({ agent }) => agent === 'bob');
    await detect();
    expect(await ask('bob', 'resource:db:ann', { waitMs: LEASE_MS, queued: true })).toMatchObject({
      outcome: 'deadlock',
    });
    room.shift(30_000);
    expect(await ask('bob', 'resource:db:ann', { waitMs: LEASE_MS })).toMatchObject({
      outcome: 'queued',
      since: before?.since,
    });
  });

  test('churn without a circle is never taken for one', async () => {
    const detector = aDetector();
    const agents = Array.from({ length: 6 }, (_, at) => `agent${at}`);
    const names = ['resource:db:p', 'resource:db:q', 'resource:db:r'];
    let aborted = 0;
    for (let round = 0; round < 60; round += 1) {
      // Everyone takes locks in one order and gives all back before asking again: there is no circle to be found.
      await Promise.all(
        agents.map(async (agent, at) => {
          const lockId = `${agent}.${round}`;
          const wanted = names.filter((_, place) => (round + at + place) % 2 === 0);
          for (const name of wanted) {
            const outcome = await ask(agent, name, { waitMs: 5_000, lockId: `${lockId}.${name.slice(-1)}` });
            if (outcome.outcome !== 'granted') break;
          }
          for (const name of names) {
            const grant = { locks: [parseLock(name)], agent, lockId: `${lockId}.${name.slice(-1)}` };
            await locks.release(grant);
            await locks.cancelWait(grant);
          }
        }),
      );
      room.shift(2_000);
      aborted += (await detector.detectOnce()).aborted;
    }
    expect(aborted).toBe(0);
  });
});
