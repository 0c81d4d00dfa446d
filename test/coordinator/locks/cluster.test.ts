import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { LockChannels } from '../../../src/coordinator/locks/channels.ts';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { Locks } from '../../../src/coordinator/locks/locks.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { Waiter } from '../../../src/coordinator/locks/waiter.ts';
import { createScripts } from '../../../src/redis/script.ts';
import { startCluster, type TestCluster } from '../../support/cluster.ts';
import { until } from '../../support/until.ts';
import { complaints, mustBeSound } from './invariants.ts';
import { asks, held, lockRoomOn, type OpenRoom, USUAL, wanted } from './room.ts';

let cluster: TestCluster;
let room: OpenRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  cluster = await startCluster();
  room = await lockRoomOn(cluster.target, { mode: 'cluster' });
  ask = asks(room.locks);
});
beforeEach(async () => {
  room.time.shiftMs = 0;
  room.limits = USUAL;
  await cluster.flush();
});
afterEach(() => mustBeSound(room));
afterAll(async () => {
  await room?.connection.stop();
  await cluster?.stop();
});

const JOB = 'task:t-1';
const DB = 'resource:db:main';
const WAIT = { waitMs: 60_000 };
const give = (agent: string, lock: string | readonly string[], lockId?: string) =>
  room.locks.release(held(agent, lock, lockId));
const redis = () => room.connection.commands;

test('grants, renews and gives back under the tagged names', async () => {
  expect(await ask('ann', JOB, { purpose: 'x' })).toMatchObject({ outcome: 'granted' });
  expect(await redis().hget('ade:lock:task:{task:t-1}', 'holder_agent_id')).toBe('ann');
  expect(await redis().smembers('ade:lock:index:agent:{agent:ann}')).toEqual(['ade:lock:task:{task:t-1}']);
  expect(await ask('ann', JOB)).toMatchObject({ outcome: 'granted', again: true });
  expect(await ask('bob', JOB)).toMatchObject({ outcome: 'held' });
  expect(await room.locks.heartbeat(held('ann', JOB), 60_000)).toMatchObject({ outcome: 'extended', heartbeats: 1 });
  expect(await give('ann', JOB)).toMatchObject([{ outcome: 'released' }]);
  expect(await give('ann', JOB)).toMatchObject([{ outcome: 'already' }]);
  expect(await room.told()).toEqual(['acquired task:t-1 ann', 'released task:t-1 ann']);
  expect(await complaints(room, true)).toEqual([]);
});

test('serves the line in order, readers and writers', async () => {
  await ask('ann', DB);
  await ask('bob', `${DB}+shared`, WAIT);
  await ask('wim', DB, WAIT);
  expect((await room.locks.waitGraph())[0]).toMatchObject({ waiters: [{ agent: 'bob' }, { agent: 'wim' }] });
  await give('ann', DB);
  expect(await ask('wim', DB, WAIT)).toMatchObject({ outcome: 'queued' });
  expect(await ask('bob', `${DB}+shared`, WAIT)).toMatchObject({ outcome: 'granted' });
  await give('bob', DB);
  expect(await ask('wim', DB, WAIT)).toMatchObject({ outcome: 'granted' });
  expect(await room.told()).toContain('promoted resource:db:main wim');
  expect(await redis().exists('ade:lock:waitfor:{agent:wim}')).toBe(0);
});

test('takes several in several slots, or gives all back', async () => {
  const several = ['resource:db:1', 'resource:db:2', 'agent:ann', JOB];
  await room.locks.setCapacity('ann', { maxTasks: 1 });
  await ask('bob', JOB);
  expect(await ask('ann', several)).toMatchObject({ outcome: 'held', blocked: { lock: parseLock(JOB) } });
  expect((await room.locks.capacity('ann'))?.activeTasks).toBe(0);
  expect(await ask('cyd', 'resource:db:1')).toMatchObject({ outcome: 'granted' });
  await give('cyd', 'resource:db:1');
  await give('bob', JOB);
  expect(await ask('ann', several)).toMatchObject({ outcome: 'granted', again: false });
  expect(await ask('ann', several)).toMatchObject({ outcome: 'granted', again: true });
  expect(await room.locks.heartbeat(held('ann', several))).toMatchObject({ outcome: 'extended' });
  expect((await give('ann', several)).map(({ outcome }) => outcome)).toEqual(Array(4).fill('released'));
  expect(await complaints(room, true)).toEqual([]);
});

test('waits for several, holding none, and gets them in turn', async () => {
  const both = ['resource:db:1', 'resource:db:2'];
  await ask('hal', 'resource:db:2');
  expect(await ask('ann', both, WAIT)).toMatchObject({
    outcome: 'queued',
    blocked: { lock: parseLock('resource:db:2') },
  });
  expect(await ask('bob', 'resource:db:1')).toMatchObject({ outcome: 'granted' });
  await give('hal', 'resource:db:2');
  expect(await ask('ann', both, WAIT)).toMatchObject({
    outcome: 'queued',
    blocked: { lock: parseLock('resource:db:1') },
  });
  await give('bob', 'resource:db:1');
  expect(await ask('ann', both, WAIT)).toMatchObject({ outcome: 'granted' });
});

test('sweeps what is overdue, once, with the indexes in other slots', async () => {
  await ask('ann', JOB);
  await ask('ann', `${DB}+shared`, { lockId: 'two' });
  await ask('bob', JOB, WAIT);
  room.pass(30_001);
  const swept = await Promise.all([sweepOnce(room.locks), sweepOnce(room.locks)]);
  expect(swept.reduce((sum, { expired }) => sum + expired, 0)).toBe(2);
  expect((await room.told()).filter((word) => word.startsWith('expired')).sort()).toEqual([
    'expired resource:db:main ann',
    'expired task:t-1 ann',
  ]);
  expect(await complaints(room, true)).toEqual([]);
});

test('keeps a line in sight of the sweeper while someone lives in it', async () => {
  await ask('ann', JOB, { leaseMs: 100_000 });
  await ask('bob', JOB, WAIT);
  room.pass(6_000);
  await ask('cyd', JOB, WAIT);
  room.pass(5_000);
  expect(await sweepOnce(room.locks)).toMatchObject({ silent: 1 });
  expect((await room.locks.waitGraph())[0]).toMatchObject({ waiters: [{ agent: 'cyd' }] });
  room.pass(11_000);
  expect(await sweepOnce(room.locks)).toMatchObject({ silent: 1 });
  expect(await redis().zcard('ade:lock:index:waiting')).toBe(0);
});

test('takes over a lease that is over in the call that finds it', async () => {
  await ask('ann', JOB);
  room.pass(30_001);
  expect(await ask('bob', JOB)).toMatchObject({ outcome: 'granted' });
  expect(await redis().exists('ade:lock:index:agent:{agent:ann}')).toBe(0);
});

test('removes what a crash between two slots left in registry and indexes', async () => {
  await redis().zadd('ade:lock:registry', 1, 'ade:lock:task:{task:t-9}');
  await redis().sadd('ade:lock:index:agent:{agent:gus}', 'ade:lock:task:{task:t-9}');
  await redis().sadd('ade:lock:index:resource:db', 'ade:lock:resource:{resource:db:main}');
  await sweepOnce(room.locks);
  expect(await complaints(room, true)).toEqual([]);
});

/** A daemon that dies between two of the calls that a cluster needs for one verb. */
describe.each([1, 2, 3, 4, 5, 6, 7, 8])('a crash after call %i', (survived) => {
  const dying = () => {
    let calls = 0;
    const die = () => {
      if (calls++ >= survived) throw new Error('crashed');
    };
    const connection = Object.create(room.connection, {
      commands: {
        get: () =>
          new Proxy(redis(), {
            get: (client, name) => {
              const own = Reflect.get(client, name);
              if (typeof own !== 'function') return own;
              return (...given: unknown[]) => {
                if (/^(sadd|srem|zadd|zrem|expire|evalsha|eval)$/.test(String(name))) die();
                return Reflect.apply(own, client, given);
              };
            },
          }),
      },
    });
    const keyspace = { mode: 'cluster' } as const;
    const context = () => ({ shift_us: room.time.shiftMs * 1000, keep: 10_000, source: 'test' });
    const scripts = createScripts({ connection, keyspace, context });
    const { events } = room;
    return new Locks({ connection, keyspace, scripts, events, limits: () => room.limits });
  };
  const tolerated = (work: Promise<unknown>) => work.catch((error: Error) => expect(error.message).toBe('crashed'));

  test('of an acquire or a release leaves nothing that one sweep after the lease does not remove', async () => {
    await tolerated(asks(dying())('ann', [JOB, DB]));
    await mustBeSound(room);
    await ask('bob', `${DB}+shared`.replace('main', 'own'));
    await tolerated(dying().release(held('bob', DB.replace('main', 'own'))));
    await mustBeSound(room);
    room.pass(31_000);
    await sweepOnce(room.locks);
    expect(await complaints(room, true)).toEqual([]);
    expect(await ask('cyd', [JOB, DB])).toMatchObject({ outcome: 'granted' });
  });
});

test('calls waiters by sharded channels', async () => {
  await ask('ann', JOB);
  const channels = new LockChannels(room.connection);
  let asked = 0;
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(asked++ === 0 ? 60_000 : ms, signal),
  };
  const got = new Waiter({ locks: room.locks, channels, clock }).acquire({
    agent: 'bob',
    lockId: 'bob-1',
    locks: wanted(JOB),
    waitMs: 120_000,
  });
  const waits = async () => (await room.locks.inspect(parseLock(JOB))).waiters.length === 1;
  await until('bob pauses in line', async () => asked > 0 && (await waits()));
  await give('ann', JOB);
  expect(await got).toMatchObject({ outcome: 'granted' });
  expect(asked).toBe(1);
});

test('declares every key: a script that touched another would be refused here', async () => {
  expect(room.connection.server.major).toBeGreaterThanOrEqual(7);
  await room.locks.setCapacity('ann', { maxTasks: 2 });
  for (const lock of [JOB, DB, `resource:db:s+shared`, 'agent:ann']) {
    expect(await ask('ann', lock, { lockId: lock.replace(/[^a-z0-9]/g, '-') })).toMatchObject({ outcome: 'granted' });
  }
});
