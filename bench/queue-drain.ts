import { interleaved, type Metric, median, metric, type Surroundings } from './harness.ts';
import { cycle, fill, RESULT, writtenUp } from './queue-cycles.ts';
import { openPeer } from './queue-peer.ts';
import { openQueueRoom, type QueueRoom } from './queue-room.ts';

const TASKS = 10_000;
const LAYER = 100;
const AGENTS = 50;
const RELEASES = 400;

/** Work that waits for other work: how fast it drains, and how soon the next one knows. */
export async function drainFigures(surroundings: Surroundings): Promise<Metric[]> {
  return [await drain(surroundings), await releases(surroundings)];
}

async function drain({ rounds, note }: Surroundings): Promise<Metric> {
  note(`${TASKS} tasks in layers`);
  await using room = await openQueueRoom();
  const { bullmq, reeve } = await interleaved(rounds, {
    bullmq: async () => {
      await room.redis.flushdb();
      await using peer = await openPeer(room);
      await peer.addTree(TASKS);
      return await drained((agent) => peer.cycle(agent));
    },
    reeve: async () => {
      await room.redis.flushdb();
      await room.add(Array.from({ length: TASKS }, (_, n) => ({ task_id: id(n), depends_on: needs(n) })));
      return await drained((agent) => takeAndEnd(room, agent), writtenUp(room));
    },
  });
  return metric({
    name: `drain of ${TASKS} tasks with ${(TASKS - LAYER) * 2} dependencies by ${AGENTS} (bullmq: a tree of as many)`,
    unit: 'per s',
    samples: reeve,
    peers: { bullmq },
    bar: { of: 'ratio', atLeast: 1.5 },
  });
}

const id = (n: number) => `TASK-${n}`;
/** The one above it in the layer before, and that one's neighbour. */
const needs = (n: number) => (n < LAYER ? [] : [id(n - LAYER), id(n - LAYER - (n % LAYER) + ((n + 1) % LAYER))]);

/** Tasks per second until all are done. Whoever finds nothing ready asks again when others had their turn. */
async function drained(cycleOf: (agent: string) => Promise<boolean>, last?: () => Promise<unknown>): Promise<number> {
  let done = 0;
  const began = performance.now();
  const agent = async (_: unknown, n: number) => {
    while (done < TASKS) {
      if (await cycleOf(`agent-${n}`)) done++;
      else await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: AGENTS }).map(agent));
  await last?.();
  return TASKS / ((performance.now() - began) / 1000);
}

async function takeAndEnd({ tasks: { work } }: QueueRoom, agent: string): Promise<boolean> {
  const got = await work.claim({ agent, leaseClass: 'process' });
  if (got.outcome !== 'claimed') return false;
  await work.complete({ task: got.task.task_id, agent, lockId: got.lease.lock_id }, RESULT);
  return true;
}

/** From the answer to the last dependency's completion until an agent that waited has the task; against a claim of what is ready. */
async function releases({ rounds, note }: Surroundings): Promise<Metric> {
  note('release of a task that an agent waits for');
  await using room = await openQueueRoom();
  const { claim, release } = await interleaved(rounds, {
    claim: async () => {
      await fill(room, RELEASES + 1);
      await cycle(room, { agent: 'ann' });
      return p99(await claimTimes(room, RELEASES));
    },
    release: async () => {
      await room.redis.flushdb();
      await room.add([
        ...Array.from({ length: RELEASES + 1 }, (_, n) => ({ task_id: id(n), depends_on: n > 0 ? [id(n - 1)] : [] })),
      ]);
      return p99(await releaseTimes(room));
    },
  });
  return metric({
    name: 'p99 from a completion to the claim of one who waited (floor: p99 of a claim)',
    unit: 'ms',
    samples: release,
    floor: [median(claim)],
    bar: { of: 'ratio', atMost: 3 },
  });
}

/** A chain, of which two agents in turn hold one task and wait for the next. */
async function releaseTimes({ tasks: { work }, desk }: QueueRoom): Promise<number[]> {
  const times: number[] = [];
  const { signal } = new AbortController();
  const agents = ['ann', 'ben'];
  let held = await work.claim({ agent: 'ann', leaseClass: 'process' });
  for (let n = 1; n <= RELEASES; n++) {
    if (held.outcome !== 'claimed') throw new Error(held.outcome);
    const [holder, waiter] = [agents[(n - 1) % 2]!, agents[n % 2]!];
    let claimedAt = 0;
    const waiting = desk.claim({ agent: waiter, leaseClass: 'process' }, { waitMs: 10_000, signal }).then((got) => {
      claimedAt = performance.now();
      return got;
    });
    // It has asked in vain, and waits.
    await new Promise((resolve) => setTimeout(resolve, 3));
    await work.complete({ task: held.task.task_id, agent: holder, lockId: held.lease.lock_id }, RESULT);
    const answered = performance.now();
    held = await waiting;
    times.push(Math.max(claimedAt - answered, 0));
  }
  return times;
}

/** Of single claims, one after the other, each given back completed. */
export async function claimTimes({ tasks: { work } }: QueueRoom, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const began = performance.now();
    const got = await work.claim({ agent: 'ann', leaseClass: 'process' });
    times.push(performance.now() - began);
    if (got.outcome !== 'claimed') throw new Error(got.outcome);
    await work.complete({ task: got.task.task_id, agent: 'ann', lockId: got.lease.lock_id }, RESULT);
  }
  return times;
}

export const p99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? Number.NaN;
