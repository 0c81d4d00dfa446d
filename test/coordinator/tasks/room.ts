import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Locks } from '../../../src/coordinator/locks/locks.ts';
import type { Phase } from '../../../src/coordinator/tasks/station.ts';
import { type Task, taskSchema } from '../../../src/coordinator/tasks/task.ts';
import { type TaskLimits, Tasks, type TasksOptions } from '../../../src/coordinator/tasks/tasks.ts';
import { silentLog } from '../../../src/log.ts';
import type { KeyspaceOptions } from '../../../src/redis/keys.ts';
import { aRedisRoom, aRoomOn, type RedisRoom } from '../../support/redis-room.ts';
import { undeclaredKeys } from '../../support/undeclared-keys.ts';
import { contradictions } from './invariants.ts';

export interface TaskRoom extends RedisRoom {
  readonly locks: Locks;
  readonly tasks: Tasks;
  /** A client of its own, as a plain agent has. */
  readonly plain: Redis;
  limits: TaskLimits;
  /** Admits tasks; a text is an id, an object what differs from the usual task. */
  add(...tasks: readonly (string | Sketch)[]): Promise<void>;
  status(task: string): Promise<string | null>;
  /** The public list, best first. */
  queue(): Promise<string[]>;
}

/** What differs from the usual task; ids are checked when it is made. */
export type Sketch = Partial<Omit<Task, 'task_id'>> & { readonly task_id: string; readonly phase?: Phase };

export const USUAL: TaskLimits = {
  window: 1_000,
  priorityOrder: 'asc',
  maxAttempts: 3,
  retryMs: 1_000,
  rawGraceMs: 30_000,
  rawLeaseMs: 600_000,
};

/** One room for all tests of a file: empty and with the usual limits before each, sound after each. */
export function inATaskRoom(take: (room: TaskRoom) => void): void {
  let room: TaskRoom;
  beforeAll(async () => {
    room = await aTaskRoom();
    take(room);
  });
  afterAll(() => room[Symbol.asyncDispose]());
  beforeEach(async () => {
    room.limits = USUAL;
    await room.reset();
  });
  afterEach(() => expectSound(room));
}

export async function aTaskRoom(project?: string, more: Partial<TasksOptions> = {}): Promise<TaskRoom> {
  const spelling: KeyspaceOptions = { mode: 'standalone', ...(project && { project }) };
  const server = await aRedisRoom();
  const own =
    project && (await aRoomOn({ kind: 'standalone', address: 'test', options: server.redis.options }, spelling));
  const base = { ...server, ...own };
  const { connection, scripts, events, keys, client } = base;
  const lockLimits = { leaseMs: 30_000, maxLeaseMs: 900_000, depth: 1_000 };
  const locks = new Locks({ connection, keyspace: spelling, scripts, events, limits: () => lockLimits });
  const room = { limits: USUAL };
  const clock = systemClock;
  const tasks = new Tasks({
    connection,
    keyspace: spelling,
    scripts,
    locks,
    clock,
    log: silentLog,
    limits: () => room.limits,
    defaultTimeout: async () => 0,
    ...more,
  });
  return Object.assign(room, base, {
    locks,
    tasks,
    plain: base.redis.client(),
    add: (...given: readonly (string | Sketch)[]) =>
      tasks.admit(
        given.map((one) => {
          const { phase = 'open', ...task }: Sketch = typeof one === 'string' ? { task_id: one } : one;
          return { task: aTask(task), phase };
        }),
      ),
    status: (task: string) => client.get(keys.taskStatus(task)),
    queue: async () => (await client.lrange(keys.taskQueue(), 0, -1)).reverse(),
  });
}

export const aTask = (task: Omit<Sketch, 'phase'>): Task =>
  taskSchema.parse({ title: task.task_id, priority: 5, origin: 'api', ...task });

/**
 * What must hold after anything: progress is a recount, nothing contradicts anything else, and every key is declared. A
 * test of thousands of tasks looks at the counts alone.
 */
export async function expectSound(room: TaskRoom): Promise<void> {
  const { client, keys, tasks, plain } = room;
  const counts = Object.entries(await tasks.views.recount()).map(([field, count]) => [field, String(count)]);
  const progress = await client.hgetall(keys.progress());
  if (Object.keys(progress).length > 0) expect(progress).toEqual(Object.fromEntries(counts));
  if ((await tasks.store.size()) <= LOOKED_AT) expect(await contradictions(room)).toEqual([]);
  expect(await undeclaredKeys(plain)).toEqual([]);
}
const LOOKED_AT = 200;
