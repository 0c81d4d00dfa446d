import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DeadlockDetector } from '../../src/coordinator/locks/deadlock-detector.ts';
import { parseLock } from '../../src/coordinator/locks/lock.ts';
import { Locks } from '../../src/coordinator/locks/locks.ts';
import { Jobs } from '../../src/jobs/jobs.ts';
import { silentLog } from '../../src/log.ts';
import { takeTurn } from '../../src/ratelimit/rate-limit.ts';
import { LiveSettings } from '../../src/system/live-settings.ts';
import { reeve } from '../support/cli.ts';
import { startCluster, type TestCluster } from '../support/cluster.ts';
import { startDaemon } from '../support/daemon.ts';
import { aRoomOn, type RoomOn } from '../support/redis-room.ts';

/** What serves the locks, where its keys lie in different slots. */
let cluster: TestCluster;
let room: RoomOn;
beforeAll(async () => {
  cluster = await startCluster();
  room = await aRoomOn(cluster.target, { mode: 'cluster' });
});
afterAll(async () => {
  await room[Symbol.asyncDispose]();
  await cluster.stop();
});

const [clock, log] = [systemClock, silentLog];

test('a live setting is changed and told of', async () => {
  const live = new LiveSettings({ ...room, clock, log });
  await live.set('lock:max_ttl', 60, 'ana');
  await live.setFlag('batch_approvals', false, 'ana');
  expect([await live.get('lock:max_ttl'), await live.isEnabled('batch_approvals')]).toEqual([60, false]);
  const { events } = await room.events.latest({ streams: ['system'] });
  expect(events.map(({ event, payload }) => [event, payload.to])).toEqual([
    ['config:changed', '60'],
    ['flag:changed', 'disabled'],
  ]);
});

test('planned and periodic jobs run once, however many daemons there are', async () => {
  const ran: string[] = [];
  const note = async ({ id }: { readonly id: string }) => void ran.push(id);
  const handlers = {
    archive: { limitMs: 5_000, run: note },
    lock_cleanup: { limitMs: 5_000, run: note, everySeconds: () => 60 },
  };
  const daemons = [1, 2].map(() => new Jobs({ ...room, clock, log, handlers }));
  await daemons[0]?.plan({ type: 'archive', id: 'a1' }, { inSeconds: 0 });
  for (const daemon of [...daemons, ...daemons]) await daemon.runDueOnce();
  expect(ran.toSorted()).toEqual(['a1', 'lock_cleanup']);
});

test('a rate is limited', async () => {
  const ask = () => takeTurn(room.scripts, room.keys.lockRateLimit('ann'), { perMinute: 60, burst: 1 });
  expect([(await ask()).outcome, (await ask()).outcome]).toEqual(['admitted', 'limited']);
});

test('a circle over several slots is broken, and told of', async () => {
  const limits = () => ({ leaseMs: 600_000, maxLeaseMs: 900_000, depth: 100 });
  const locks = new Locks({ ...room, limits });
  const options = { locks, clock, log, isEnabled: async () => true, confirmMs: async () => 10_000 };
  const detector = new DeadlockDetector(options);
  const agents = ['ann', 'bob', 'cyd'];
  const ask = (agent: string, of: string, waitMs = 0) => {
    const lock = parseLock(`resource:db:${of}`);
    return locks.acquire({ locks: [{ lock }], agent, lockId: `${agent}-${of}`, leaseClass: 'agent', waitMs });
  };
  for (const agent of agents) expect(await ask(agent, agent)).toMatchObject({ outcome: 'granted' });
  for (const [at, agent] of agents.entries()) {
    expect(await ask(agent, agents[(at + 1) % 3] as string, 500_000)).toMatchObject({ outcome: 'queued' });
    room.shift(10);
  }
  room.shift(1_010);
  expect(await detector.detectOnce()).toEqual({ suspected: 1, aborted: 0 });
  room.shift(10_000);
  expect(await detector.detectOnce()).toEqual({ suspected: 0, aborted: 1 });
  expect(await ask('cyd', 'ann', 500_000)).toMatchObject({ outcome: 'deadlock' });
  expect(await ask('bob', 'cyd', 500_000)).toMatchObject({ outcome: 'granted' });
  const { events } = await room.events.latest({ streams: ['lock'] });
  expect(events.filter(({ event }) => event === 'lock:deadlock')).toMatchObject([{ payload: { agent_id: 'cyd' } }]);
});

test('a daemon there says that tasks need one server, through each verb about them, and serves locks all the same', async () => {
  const hosts = cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
  await using daemon = await startDaemon({ env: { REDIS_URL: `redis://${hosts}`, REEVE_REDIS_MODE: 'cluster' } });
  const ask = (...args: string[]) => reeve([...args, '--json'], { cwd: daemon.cwd });
  const verbs = [
    ['next', '--agent', 'ann'],
    ['task', 'list'],
    ['done', 'A', '--agent', 'ann'],
    ['task', 'add', 'A', '--title', 'a'],
  ];
  for (const verb of verbs) {
    const ran = await ask(...verb);
    expect([verb, ran.code, ran.stdout]).toEqual([verb, 8, expect.stringContaining('TASKS_NEED_ONE_SERVER')]);
  }
  const { body } = await daemon.get('/api/v1/status');
  expect(JSON.stringify(body)).toContain('TASKS_NEED_ONE_SERVER');
  expect(await ask('lock', 'acquire', 'resource:db:main', '--agent', 'ann')).toMatchObject({ code: 0 });
});
