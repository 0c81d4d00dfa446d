import { systemClock } from '../src/clock.ts';
import { Locks } from '../src/coordinator/locks/locks.ts';
import { TaskDesk } from '../src/coordinator/tasks/desk.ts';
import { type Task, taskSchema } from '../src/coordinator/tasks/task.ts';
import { Tasks } from '../src/coordinator/tasks/tasks.ts';
import { silentLog } from '../src/log.ts';
import { type BenchRedis, openBenchRedis } from './bench-redis.ts';

export interface QueueRoom extends BenchRedis {
  readonly tasks: Tasks;
  readonly desk: TaskDesk;
  /** Admits tasks; what is not said of one is as usual. */
  add(tasks: readonly Sketch[]): Promise<void>;
}

export type Sketch = Partial<Omit<Task, 'task_id'>> & { readonly task_id: string };

/** The task room as the daemon has it: with its locks, its desk, and its settings at their defaults. */
export async function openQueueRoom(): Promise<QueueRoom> {
  const base = await openBenchRedis();
  const { connection, spelling, scripts, events } = base;
  const lockLimits = () => ({ leaseMs: 30_000, maxLeaseMs: 900_000, depth: 1000 });
  const locks = new Locks({ connection, keyspace: spelling, scripts, events, limits: lockLimits });
  const limits = () => ({
    window: 1_000,
    priorityOrder: 'asc' as const,
    maxAttempts: 3,
    retryMs: 10_000,
    rawGraceMs: 30_000,
    rawLeaseMs: 600_000,
    unwritten: 256,
  });
  const tasks = new Tasks({
    connection,
    keyspace: spelling,
    scripts,
    locks,
    clock: systemClock,
    log: silentLog,
    limits,
    defaultTimeout: async () => 3_600,
  });
  const desk = new TaskDesk({ connection, store: tasks.store, work: tasks.work, clock: systemClock });
  const listening = desk.listening();
  await listening.start();
  const close = async () => {
    await listening.stop();
    await base[Symbol.asyncDispose]();
  };
  const add = (given: readonly Sketch[]) =>
    tasks.admit(given.map((one) => ({ task: taskSchema.parse({ ...USUAL, ...one }), phase: 'open' as const })));
  return { ...base, tasks, desk, add, [Symbol.asyncDispose]: close };
}

const USUAL = {
  title: 'Add a login form',
  description: 'With a field for each, and a button',
  priority: 5,
  origin: 'api',
};
