import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { sweepOnce } from '../../../src/coordinator/locks/sweeper.ts';
import { ReeveError } from '../../../src/errors.ts';
import { startCluster, type TestCluster } from '../../support/cluster.ts';
import { complaints } from './invariants.ts';
import { asks, held, lockRoomOn, type OpenRoom } from './room.ts';

const JOB = 'task:t-1';
const WAIT = { waitMs: 60_000 };

let cluster: TestCluster;
let room: OpenRoom;
let clients: Redis[];
beforeAll(async () => {
  cluster = await startCluster();
  room = await lockRoomOn(cluster.target, { mode: 'cluster' });
  clients = cluster.nodes.map(({ port }) => new Redis(port, '127.0.0.1'));
});
afterAll(async () => {
  for (const client of clients ?? []) client.disconnect();
  await room?.connection.stop();
  await cluster?.stop();
});

/** Moves one slot to another node as `redis-cli --cluster reshard` does, key by key, with a moment between. */
async function moveSlot(slot: number, from: number, to: number, between: () => Promise<void>): Promise<void> {
  const [source, target] = [clients[from]!, clients[to]!];
  const [sourceId, targetId] = await Promise.all([source.call('CLUSTER', 'MYID'), target.call('CLUSTER', 'MYID')]);
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(sourceId));
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(targetId));
  for (;;) {
    const [key] = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
    if (key === undefined) break;
    await source.call('MIGRATE', '127.0.0.1', cluster.nodes[to]!.port, key, 0, 5_000);
    await between();
  }
  for (const client of [target, source, ...clients])
    await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(targetId));
}

/** A call that the cluster cannot serve while keys are under way fails as unavailable, and is made again. */
async function sure<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      expect(error).toBeInstanceOf(ReeveError);
      expect((error as ReeveError).code).toMatch(/^REDIS_(UNAVAILABLE|REPLY_UNKNOWN)$/);
    }
  }
}

test('while the slot of a lock moves to another node there is one holder, tokens rise, and everyone is served', async () => {
  const slot = await clients[0]!.cluster('KEYSLOT', room.keys.taskLock('t-1'));
  const home = cluster.nodes.indexOf(await cluster.nodeOf(room.keys.taskLock('t-1')));
  const inside = new Set<string>();
  const tokens: number[] = [];
  let moved = false;
  const agent = async (name: string) => {
    const ask = asks(room.locks);
    for (let round = 0; !moved || round < 3; round++) {
      const lockId = `${name}-${round}`;
      let outcome = await sure(() => ask(name, JOB, { ...WAIT, lockId }));
      for (; outcome.outcome === 'queued'; outcome = await sure(() => ask(name, JOB, { ...WAIT, lockId })))
        await systemClock.sleep(5);
      expect(outcome).toMatchObject({ outcome: 'granted' });
      expect([...inside]).toEqual([]);
      inside.add(name);
      tokens.push(outcome.outcome === 'granted' ? outcome.grants[0]!.token : 0);
      expect(await sure(() => room.locks.heartbeat(held(name, JOB, lockId)))).toMatchObject({ outcome: 'extended' });
      inside.delete(name);
      const [given] = await sure(() => room.locks.release(held(name, JOB, lockId)));
      expect(['released', 'already']).toContain(given?.outcome);
    }
  };
  const migration = async () => {
    // There and back, so that the scripts are unknown to the node the first time and known the second.
    for (const [from, to] of [
      [home, (home + 1) % 3],
      [(home + 1) % 3, home],
    ] as const)
      await moveSlot(slot, from, to, () => systemClock.sleep(30));
    moved = true;
  };
  await Promise.all([migration(), ...['ann', 'bob', 'cyd'].map(agent)]);
  expect(tokens.length).toBeGreaterThanOrEqual(9);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  await sweepOnce(room.locks);
  expect(await complaints(room, true)).toEqual([]);
}, 60_000);
