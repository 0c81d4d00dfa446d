import { Redis } from 'ioredis';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import type { CopiesWanted } from '../../../src/coordinator/locks/copies.ts';
import type { AcquireOutcome } from '../../../src/coordinator/locks/lock.ts';
import { startCluster } from '../../support/cluster.ts';
import { freePort, type RedisProcess, runRedis } from '../../support/redis-process.ts';
import { until } from '../../support/until.ts';
import { mustBeSound } from './invariants.ts';
import { asks, held, lockRoomOn, type OpenRoom } from './room.ts';

const JOB = 'task:t-1';
const KEY = 'ade:lock:task:t-1';
const ONE_COPY: CopiesWanted = { replicas: 1, withinMs: 3_000 };
const ONE_COPY_SOON: CopiesWanted = { replicas: 1, withinMs: 300 };

/** Else a master waits for more replicas before it sends anything to the first. */
const AT_ONCE = { 'repl-diskless-sync-delay': 0 };

const rooms: OpenRoom[] = [];
afterEach(async () => {
  for (const room of rooms.splice(0)) await room.connection.stop();
});

async function roomOn({ port }: RedisProcess, copies?: CopiesWanted): Promise<OpenRoom> {
  const target = { kind: 'standalone', address: `127.0.0.1:${port}`, options: { port, host: '127.0.0.1' } } as const;
  const room = await lockRoomOn(target, { mode: 'standalone' }, copies);
  rooms.push(room);
  return room;
}

function clientOf({ port }: RedisProcess): Redis {
  const client = new Redis(port, '127.0.0.1');
  onTestFinished(() => client.disconnect());
  return client;
}

async function aPair(): Promise<{ readonly master: RedisProcess; readonly replica: RedisProcess }> {
  const master = await runRedis(AT_ONCE);
  const replica = await runRedis(AT_ONCE, { lines: [`replicaof 127.0.0.1 ${master.port}`] });
  onTestFinished(async () => {
    await replica[Symbol.asyncDispose]();
    await master[Symbol.asyncDispose]();
  });
  const client = clientOf(master);
  await until('the replica follows', async () => /state=online/.test(await client.info('replication')));
  return { master, replica };
}

const tokenOf = (outcome: AcquireOutcome): number =>
  outcome.outcome === 'granted' ? (outcome.grants[0]?.token ?? 0) : 0;

describe('a grant that must be copied', () => {
  test('counts when the replica has it', async () => {
    const { master, replica } = await aPair();
    const room = await roomOn(master, ONE_COPY);
    expect(await asks(room.locks)('ann', [JOB, 'resource:db:x'])).toMatchObject({ outcome: 'granted', again: false });
    expect(await clientOf(replica).hget(KEY, 'holder_agent_id')).toBe('ann');
    expect(await asks(room.locks)('bob', JOB)).toMatchObject({ outcome: 'held' });
  });

  test('is none when the replica does not get it in time: it is given back, and may be asked for again', async () => {
    const { master, replica } = await aPair();
    const room = await roomOn(master, ONE_COPY_SOON);
    replica.hang();
    const attempt = asks(room.locks)('ann', JOB);
    await expect(attempt).rejects.toMatchObject({ code: 'LOCK_NOT_COPIED' });
    expect(await clientOf(master).exists(KEY)).toBe(0);
    await mustBeSound(room);
    // Nobody else's commands were held up by the waiting, and nobody is kept from the lock by it.
    expect(await asks((await roomOn(master)).locks)('bob', JOB)).toMatchObject({ outcome: 'granted' });
    await room.locks.release(held('bob', JOB));

    replica.goOn();
    await until('the replica is back', () =>
      asks(room.locks)('ann', JOB).then(
        ({ outcome }) => outcome === 'granted',
        () => false,
      ),
    );
  });

  test('that was had before stays, also if it cannot be confirmed anew', async () => {
    const { master, replica } = await aPair();
    const room = await roomOn(master, ONE_COPY_SOON);
    await asks((await roomOn(master)).locks)('ann', JOB);
    replica.hang();
    await expect(asks(room.locks)('ann', JOB)).rejects.toMatchObject({ code: 'LOCK_NOT_COPIED' });
    expect(await room.locks.heartbeat(held('ann', JOB))).toMatchObject({ outcome: 'extended' });
  });

  test('in a cluster is asked of the node that has the lock; what was taken on others before is given back', async () => {
    await using cluster = await startCluster();
    const room = await lockRoomOn(cluster.target, { mode: 'cluster' }, ONE_COPY_SOON);
    rooms.push(room);
    const node = await cluster.nodeOf(room.keys.taskLock('t-1'));
    await using replica = await aClusterReplica(node);
    const link = clientOf(replica);
    await until('the replica follows', async () => /master_link_status:up/.test(await link.info('replication')));
    const elsewhere = await lockOnAnotherNode(cluster, node, room);

    const [asked, alone] = [asks(room.locks), asks((await otherRoom(cluster)).locks)];
    await until('the replica has it', () =>
      asked('ann', JOB).then(
        ({ outcome }) => outcome === 'granted',
        () => false,
      ),
    );
    expect(await clientOf(replica).call('CLUSTER', 'COUNTKEYSINSLOT', await slotOf(node, room))).toBeGreaterThan(0);
    await expect(asked('bob', elsewhere)).rejects.toMatchObject({ code: 'LOCK_NOT_COPIED' });
    await room.locks.release(held('ann', JOB));
    // Taken in order: the resource, which nobody copies, fails before the task is touched; the other way round it is undone.
    await expect(asked('cyd', [JOB, elsewhere], { lockId: 'both' })).rejects.toMatchObject({ code: 'LOCK_NOT_COPIED' });
    expect(await alone('dan', [JOB, elsewhere])).toMatchObject({ outcome: 'granted' });
    await mustBeSound(room);
  });
});

describe('a failover that loses a grant', () => {
  test('gives the next one a higher token; the first holder can neither beat nor release', async () => {
    const { master, replica } = await aPair();
    const before = await roomOn(master);
    // From here on nothing reaches it: what a partition does, and what its promotion then makes of it.
    await clientOf(replica).replicaof('NO', 'ONE');
    const lost = tokenOf(await asks(before.locks)('ann', JOB));
    await master.crash();

    const after = await roomOn(replica);
    const next = await asks(after.locks)('bob', JOB);
    expect(next).toMatchObject({ outcome: 'granted' });
    expect(tokenOf(next)).toBeGreaterThan(lost);
    expect(await after.locks.heartbeat(held('ann', JOB))).toMatchObject({ outcome: 'lost' });
    expect(await after.locks.release(held('ann', JOB))).toMatchObject([{ outcome: 'lost' }]);
    expect(await after.locks.heartbeat(held('bob', JOB))).toMatchObject({ outcome: 'extended' });
    await mustBeSound(after);
  });

  test('of a master that was cut off with the holder ends in refusals on both sides', async () => {
    const { master, replica } = await aPair();
    const cutOff = await roomOn(master);
    await clientOf(replica).replicaof('NO', 'ONE');
    const old = tokenOf(await asks(cutOff.locks)('ann', JOB));
    const newer = tokenOf(await asks((await roomOn(replica)).locks)('bob', JOB));
    expect(newer).toBeGreaterThan(old);

    await clientOf(master).replicaof('127.0.0.1', replica.port);
    await until('the old master follows', async () =>
      /master_link_status:up/.test(await clientOf(master).info('replication')),
    );
    const failed = { code: 'REDIS_UNAVAILABLE', message: expect.stringContaining('READONLY') };
    await expect(cutOff.locks.heartbeat(held('ann', JOB))).rejects.toMatchObject(failed);
    await expect(asks(cutOff.locks)('ann', JOB, { lockId: 'ann-2' })).rejects.toMatchObject(failed);
    expect(await clientOf(master).hget(KEY, 'fencing_token')).toBe(String(newer));
  });
});

async function otherRoom({ target }: { readonly target: OpenRoomTarget }): Promise<OpenRoom> {
  const room = await lockRoomOn(target, { mode: 'cluster' });
  rooms.push(room);
  return room;
}
type OpenRoomTarget = Parameters<typeof lockRoomOn>[0];

const slotOf = (node: RedisProcess, room: OpenRoom): Promise<number> =>
  clientOf(node).cluster('KEYSLOT', room.keys.taskLock('t-1'));

async function lockOnAnotherNode(
  cluster: Awaited<ReturnType<typeof startCluster>>,
  node: RedisProcess,
  room: OpenRoom,
) {
  for (let n = 0; ; n++) {
    if ((await cluster.nodeOf(room.keys.resourceLock('db', `x${n}`))) !== node) return `resource:db:x${n}`;
  }
}

async function aClusterReplica(of: RedisProcess): Promise<RedisProcess> {
  const replica = await runRedis({
    'cluster-enabled': 'yes',
    'cluster-node-timeout': 2_000,
    'cluster-port': await freePort(),
  });
  const [client, master] = [clientOf(replica), clientOf(of)];
  await master.config('SET', 'repl-diskless-sync-delay', '0');
  const id = String(await master.call('CLUSTER', 'MYID'));
  const own = String(await master.call('CLUSTER', 'NODES'))
    .split('\n')
    .find((line) => line.startsWith(id));
  const busPort = /@(\d+)/.exec(own ?? '')?.[1] as string;
  await client.call('CLUSTER', 'MEET', '127.0.0.1', of.port, busPort);
  await until('it may follow', () =>
    client.call('CLUSTER', 'REPLICATE', id).then(
      () => true,
      () => false,
    ),
  );
  return replica;
}
