import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { Locks } from '../../../src/coordinator/locks/locks.ts';
import { ReeveError } from '../../../src/errors.ts';
import type { Scripts } from '../../../src/redis/script.ts';
import { complaints } from './invariants.ts';
import { aLockRoom, asks, held, type LockRoom } from './room.ts';

let room: LockRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  room = await aLockRoom();
  ask = asks(room.locks);
});
beforeEach(async () => {
  await room.reset();
  await room.connection.commands.config('RESETSTAT');
});
afterAll(() => room.stop());

const AGENTS = ['ann', 'bob', 'cyd', 'dee', 'eve'] as const;
const own = (agent: string) => `task:${agent}`;
const takeAll = (locks = ask) => Promise.all(AGENTS.map((agent) => locks(agent, own(agent))));
const giveAll = () => Promise.all(AGENTS.map((agent) => room.locks.release(held(agent, own(agent)))));
const calls = async () => {
  const stats = await room.connection.commands.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)[^\n]*failed_calls=(\d+)/g)]
    .map(([, all, failed]) => Number(all) - Number(failed))
    .reduce((sum, count) => sum + count, 0);
};

test('what is asked in one turn goes in two calls, the first by itself', async () => {
  expect(await takeAll()).toMatchObject(AGENTS.map((agent) => ({ outcome: 'granted', grants: [{ agent }] })));
  expect(await calls()).toBe(2);
  expect(await complaints(room)).toEqual([]);
  await room.connection.commands.config('RESETSTAT');
  expect(await giveAll()).toMatchObject(AGENTS.map(() => [{ outcome: 'released' }]));
  expect(await calls()).toBe(2);
  expect(await complaints(room, true)).toEqual([]);
  expect((await room.told()).toSorted()).toEqual(
    AGENTS.flatMap((agent) => [`acquired ${own(agent)} ${agent}`, `released ${own(agent)} ${agent}`]).toSorted(),
  );
});

test('a lock that several ask for in one turn goes to the first, and tokens rise', async () => {
  const outcomes = await Promise.all(AGENTS.map((agent) => ask(agent, 'task:1')));
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['granted', 'held', 'held', 'held', 'held']);
  await room.locks.release(held('ann', 'task:1'));

  const [one, ...others] = await Promise.all([
    ask('x', 'task:2'),
    ...AGENTS.map((agent) => ask(`${agent}-2`, 'task:1')),
  ]);
  expect(one).toMatchObject({ outcome: 'granted' });
  expect(others.map(({ outcome }) => outcome)).toEqual(['granted', 'held', 'held', 'held', 'held']);
  expect(await room.told()).toEqual([
    'acquired task:1 ann',
    'released task:1 ann',
    'acquired task:2 x',
    'acquired task:1 ann-2',
  ]);
  expect(await complaints(room)).toEqual([]);
});

test('a grant that is given back twice in one turn is given back once', async () => {
  await takeAll();
  const twice = await Promise.all([...AGENTS, ...AGENTS].map((agent) => room.locks.release(held(agent, own(agent)))));

  expect(twice.slice(0, 5).map(([one]) => one?.outcome)).toEqual(AGENTS.map(() => 'released'));
  expect(twice.slice(5).map(([one]) => one?.outcome)).toEqual(AGENTS.map(() => 'already'));
  expect((await room.told()).filter((word) => word.startsWith('released'))).toHaveLength(5);
});

test('only its own grant: a release of somebody else, or of a lease that is over, changes nothing', async () => {
  await ask('ann', own('ann'));
  await ask('bob', own('bob'), { leaseMs: 1_000 });
  await ask('cyd', own('cyd'));
  await ask('dee', own('dee'));
  room.pass(2_000);
  const outcomes = await Promise.all([
    room.locks.release(held('dee', own('dee'))),
    room.locks.release(held('mallory', own('ann'), 'ann-1')),
    room.locks.release(held('bob', own('bob'))),
    room.locks.release(held('cyd', own('cyd'), 'another')),
  ]);

  expect(outcomes.map(([one]) => one?.outcome)).toEqual(['released', 'lost', 'lost', 'lost']);
  expect((await room.locks.inspect(parseLock(own('ann')))).holders).toMatchObject([{ agent: 'ann' }]);
  expect((await room.locks.inspect(parseLock(own('cyd')))).holders).toMatchObject([{ agent: 'cyd' }]);
});

test('whoever waits for one of them is called, and gets it', async () => {
  await takeAll();
  await ask('zoe', own('cyd'), { waitMs: 20_000 });
  expect((await giveAll()).map(([one]) => one?.outcome)).toEqual(AGENTS.map(() => 'released'));

  expect((await room.told()).filter((word) => word.startsWith('promoted'))).toEqual(['promoted task:cyd zoe']);
  expect(await ask('zoe', own('cyd'), { waitMs: 20_000, queued: true })).toMatchObject({ outcome: 'granted' });
  expect(await complaints(room)).toEqual([]);
});

test('a spent request stays spent, a lease that ran out is told of once, and one in line goes first', async () => {
  await ask('ann', own('ann'));
  await room.locks.release(held('ann', own('ann')));
  await ask('bob', own('bob'), { leaseMs: 1_000 });
  await ask('cyd', own('cyd'));
  await ask('zoe', own('cyd'), { waitMs: 60_000, leaseClass: 'agent' });
  await room.locks.release(held('cyd', own('cyd')));
  room.pass(2_000);
  const [, ann, bob, cyd] = await Promise.all([
    ask('x', 'task:x'),
    ask('ann', own('ann')),
    ask('bob', own('bob'), { lockId: 'bob-2' }),
    ask('cyd', own('cyd'), { lockId: 'cyd-2' }),
  ]);

  expect(ann).toMatchObject({ outcome: 'spent' });
  expect(bob).toMatchObject({ outcome: 'granted' });
  expect(cyd).toMatchObject({ outcome: 'held' });
  expect((await room.told()).filter((word) => word.startsWith('expired'))).toEqual(['expired task:bob bob']);
});

test.each([
  ['its lock', (agent: string) => room.keys.taskLock(agent)],
  ['its fence', (agent: string) => room.keys.taskLockFence(agent)],
  ['the index of its agent', (agent: string) => room.keys.agentLocks(agent)],
])('one that meets something else where %s should be fails alone, and leaves no lock', async (_, key) => {
  await room.connection.commands.set(key('cyd'), 'planted');
  const outcomes = await Promise.allSettled(AGENTS.map((agent) => ask(agent, own(agent))));

  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
  ]);
  expect(await room.connection.commands.type(room.keys.taskLock('cyd'))).not.toBe('hash');
  await room.connection.commands.del(key('cyd'), room.keys.taskLock('cyd'));
  expect(await complaints(room)).toEqual([]);
});

test('an answer that is lost is asked for again, by each for itself', async () => {
  const { connection, scripts, events } = room;
  const losing: Scripts = {
    run: async (script, ...rest) => {
      const reply = await scripts.run(script, ...rest);
      if (/^(acquires|releases)/.test(script.name)) throw new ReeveError('REDIS_REPLY_UNKNOWN', { address: 'test' });
      return reply;
    },
  };
  const options = { connection, events, keyspace: { mode: 'standalone' }, limits: () => room.limits } as const;
  const locks = new Locks({ ...options, scripts: losing });

  expect((await takeAll(asks(locks))).map((one) => one.outcome === 'granted' && one.again)).toEqual([
    ...[false, true, true, true, true],
  ]);
  const given = await Promise.all(AGENTS.map((agent) => locks.release(held(agent, own(agent)))));
  expect(given.map(([one]) => one?.outcome)).toEqual(['released', 'already', 'already', 'already', 'already']);
  expect(await room.told()).toHaveLength(10);
});
