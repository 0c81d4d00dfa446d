import { type ConnectionOptions, FlowProducer, type Job, Queue, Worker } from 'bullmq';
import type { BenchRedis } from './bench-redis.ts';

const NAME = 'bench';

/**
 * BullMQ as its manual describes fetching by hand: a worker without a processor, a token per agent, and completions that do not
 * fetch the next job by themselves. Like reeve's, its agents share one connection. It keeps every finished job, as reeve does.
 */
export interface Peer extends AsyncDisposable {
  add(count: number): Promise<void>;
  /** A tree: a parent becomes ready when its children have completed. */
  addTree(nodes: number): Promise<void>;
  /** Fetches and completes one. False if there was none. */
  cycle(agent: string): Promise<boolean>;
}

export async function openPeer({ options }: BenchRedis): Promise<Peer> {
  // Its types stand on the release of ioredis before ours; its code takes either.
  const connection = options as ConnectionOptions;
  const queue = new Queue(NAME, { connection });
  const flows = new FlowProducer({ connection });
  const worker = new Worker(NAME, null, { connection, lockDuration: 30_000 });
  await Promise.all([queue.waitUntilReady(), flows.waitUntilReady(), worker.waitUntilReady()]);
  const add = async (count: number) => {
    for (let at = 0; at < count; at += 1_000) {
      await queue.addBulk(Array.from({ length: Math.min(1_000, count - at) }, () => ({ name: 'task', data: DATA })));
    }
  };
  const addTree = async (nodes: number) => {
    const width = Math.round(Math.sqrt(nodes));
    const leaf = { name: 'task', queueName: NAME, data: DATA };
    const branch = { ...leaf, children: Array.from({ length: width }, () => leaf) };
    // One root, `width` branches less one, and what is left as leaves of the last: exactly so many nodes.
    const branches = Array.from({ length: Math.floor((nodes - 1) / (width + 1)) }, () => branch);
    const rest = nodes - 1 - branches.length * (width + 1);
    await flows.add({ ...leaf, children: [...branches, ...Array.from({ length: rest }, () => leaf)] });
  };
  const cycle = async (agent: string) => {
    const job = (await worker.getNextJob(agent, { block: false })) as Job | undefined;
    if (!job) return false;
    await job.moveToCompleted(RESULT, agent, false);
    return true;
  };
  const close = async () => {
    await Promise.all([worker.close(), flows.close(), queue.close()]);
  };
  return { add, addTree, cycle, [Symbol.asyncDispose]: close };
}

const DATA = { title: 'Add a login form', description: 'With a field for each, and a button' };
const RESULT = { files_modified: ['src/form.ts'], notes: 'done' };
