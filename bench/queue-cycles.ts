import type { Redis } from 'ioredis';
import type { ClaimRequest } from '../src/coordinator/tasks/work.ts';
import { interleaved, type Metric, metric, type Surroundings } from './harness.ts';
import { openPeer } from './queue-peer.ts';
import { openQueueRoom, type QueueRoom } from './queue-room.ts';

const CYCLES = { 50: 10_000, 1: 2_000 } as const;
const AT_ONCE = 10;
const INFORMED = { of: 'value', atLeast: 0 } as const;

/** Claim and complete: each claim takes the task's lock, that of a file, and a place of the agent, and writes its events. */
export async function cycleFigures(surroundings: Surroundings): Promise<Metric[]> {
  return [
    ...(await cyclesOf(50, surroundings)),
    ...(await cyclesOf(1, surroundings)),
    ...(await several(surroundings)),
  ];
}

async function cyclesOf(agents: 50 | 1, { rounds, note }: Surroundings): Promise<Metric[]> {
  note(`claim and complete, ${agents} at a time`);
  await using room = await openQueueRoom();
  const { redis } = room;
  const count = CYCLES[agents];
  const server: number[] = [];
  const floorOf = await trivialScripts(redis);
  const { floor, bullmq, reeve } = await interleaved(rounds, {
    floor: async () => {
      await redis.lpush('floor:ready', ...Array.from({ length: count }, (_, n) => `TASK-${n}`));
      return await rate(count, agents, floorOf);
    },
    bullmq: async () => {
      await redis.flushdb();
      await using peer = await openPeer(room);
      await peer.add(count);
      return await rate(count, agents, (agent) => peer.cycle(agent));
    },
    reeve: async () => {
      await fill(room, count);
      await redis.config('RESETSTAT');
      const result = await rate(count, agents, (agent) => cycle(room, { agent }), writtenUp(room));
      server.push((await scriptMicros(redis)) / count);
      return result;
    },
  });
  const at = `${agents} at a time`;
  const bar = { of: 'ratio', atLeast: agents === 50 ? 1 : 1.2 } as const;
  return [
    metric({ name: `claim and complete, ${at}`, unit: 'per s', samples: reeve, peers: { bullmq }, bar }),
    metric({ name: `floor: a trivial claim and a trivial ack, ${at}`, unit: 'per s', samples: floor, bar: INFORMED }),
    metric({ name: `time in Redis of a claim and a completion, ${at}`, unit: 'µs', samples: server, bar: INFORMED }),
  ];
}

/** One agent that asks for several tasks at once, and ends them at once. */
async function several({ rounds, note }: Surroundings): Promise<Metric[]> {
  note(`claim and complete, ${AT_ONCE} per call`);
  await using room = await openQueueRoom();
  const count = CYCLES[1];
  const { one, many } = await interleaved(rounds, {
    one: async () => {
      await fill(room, count);
      return await rate(count, 1, (agent) => cycle(room, { agent }), writtenUp(room));
    },
    many: async () => {
      await fill(room, count);
      const { work } = room.tasks;
      const several = async (agent: string) => {
        const { claimed } = await work.claimSeveral({ agent, leaseClass: 'process', places: AT_ONCE }, AT_ONCE);
        const leases = claimed.map(({ task, lease }) => ({ task: task.task_id, agent, lockId: lease.lock_id }));
        await work.completeSeveral(leases.map((lease) => ({ lease, result: RESULT })));
      };
      const calls = await rate(count / AT_ONCE, 1, several, writtenUp(room));
      return calls * AT_ONCE;
    },
  });
  const bar = { of: 'ratio', atLeast: 1.5 } as const;
  const name = `claim and complete, ${AT_ONCE} per call by one agent (floor: one per call)`;
  return [metric({ name, unit: 'tasks per s', samples: many, floor: one, bar })];
}

/** What was left for later is part of what is measured. */
export const writtenUp = (room: QueueRoom) => () => room.tasks.ledger.writeUpOnce();

/** How many per second, so many agents doing them one after the other; and what is to be done before that is all. */
export async function rate(
  count: number,
  agents: number,
  work: (agent: string) => Promise<unknown>,
  last?: () => Promise<unknown>,
): Promise<number> {
  let left = count;
  const began = performance.now();
  const agent = async (_: unknown, n: number) => {
    while (left-- > 0) await work(`agent-${n}`);
  };
  await Promise.all(Array.from({ length: agents }).map(agent));
  await last?.();
  return count / ((performance.now() - began) / 1000);
}

export async function cycle({ tasks: { work } }: QueueRoom, request: ClaimRequest): Promise<void> {
  const got = await work.claim({ leaseClass: 'process', ...request });
  if (got.outcome !== 'claimed') throw new Error(got.outcome);
  const lease = { task: got.task.task_id, agent: request.agent, lockId: got.lease.lock_id };
  const ended = await work.complete(lease, RESULT);
  if (ended.outcome !== 'completed') throw new Error(ended.outcome);
}

/** Anew, with so many tasks that are ready, each on a file of its own. */
export async function fill(room: QueueRoom, count: number): Promise<void> {
  await room.redis.flushdb();
  await room.add(
    Array.from({ length: count }, (_, n) => ({ task_id: `TASK-${n}`, files_to_modify: [`src/part-${n}/form.ts`] })),
  );
}

async function trivialScripts(redis: Redis): Promise<() => Promise<unknown>> {
  const load = async (lua: string) => (await redis.script('LOAD', lua)) as string;
  const claim = await load("return redis.call('RPOPLPUSH', KEYS[1], KEYS[2])");
  const ack = await load("return redis.call('LREM', KEYS[1], 1, ARGV[1])");
  return async () => {
    const task = (await redis.evalsha(claim, 2, 'floor:ready', 'floor:running')) as string;
    await redis.evalsha(ack, 1, 'floor:running', task);
  };
}

async function scriptMicros(redis: Redis): Promise<number> {
  return Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
}

export const RESULT = { files_modified: ['src/form.ts'], notes: 'done' };
