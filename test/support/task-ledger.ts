import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Outbox } from '../../src/coordinator/tasks/outbox.ts';
import type { Phase, Station } from '../../src/coordinator/tasks/station.ts';
import type { Task, TaskId } from '../../src/coordinator/tasks/task.ts';
import type { Admission, Amendment, Standing, TaskSink, Verdict } from '../../src/coordinator/tasks/task-sink.ts';
import { silentLog } from '../../src/log.ts';
import { connectRedis } from '../../src/redis/connection.ts';
import { keyspace } from '../../src/redis/keys.ts';
import type { TestRedis } from './redis.ts';

const STATION: Record<Phase, Station> = {
  open: 'ready',
  running: 'working',
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

interface Entry {
  task: Task;
  station: Station;
  agent: string | undefined;
  isHeld: boolean;
  quarantine: string | undefined;
}

/** The least that a task room can be: where tasks stand, kept in memory, and a real outbox in Redis. */
export class TaskLedger implements TaskSink {
  readonly tasks = new Map<string, Entry>();
  readonly calledOff: string[] = [];
  readonly #outbox: Outbox;
  readonly #append: (fields: Record<string, string>) => Promise<unknown>;
  /** How often settling is still to fail, as if the process died before it. */
  failSettling = 0;

  constructor(outbox: Outbox, append: (fields: Record<string, string>) => Promise<unknown>) {
    this.#outbox = outbox;
    this.#append = append;
  }

  async admit(admissions: readonly Admission[]): Promise<void> {
    for (const { task, phase, agent, isHeld = false, quarantine } of admissions) {
      const station = isHeld && phase === 'open' ? 'waiting' : STATION[phase];
      if (!this.tasks.has(task.task_id)) this.tasks.set(task.task_id, { task, station, agent, isHeld, quarantine });
    }
  }

  async amend(amendments: readonly Amendment[]): Promise<void> {
    for (const { task_id, set, verdict, quarantine } of amendments) {
      const entry = this.tasks.get(task_id)!;
      entry.task = { ...entry.task, ...set };
      if (quarantine !== undefined) entry.quarantine = quarantine ?? undefined;
      if (verdict) await this.#judge(task_id, entry, verdict);
    }
  }

  async #judge(id: string, entry: Entry, { to, agent }: Verdict): Promise<void> {
    entry.isHeld = to === 'held';
    if (to === 'held' || to === 'released') entry.station = to === 'held' ? 'waiting' : 'ready';
    else await this.act(id, 'task_judged', STATION[to], agent ?? entry.agent);
  }

  async cancel(ids: readonly TaskId[]): Promise<void> {
    this.calledOff.push(...ids);
    for (const id of ids) {
      const entry = this.tasks.get(id);
      if (entry) entry.station = 'cancelled';
    }
  }

  async standings(ids: readonly TaskId[]): Promise<ReadonlyMap<TaskId, Standing>> {
    const known = ids.flatMap((id): [TaskId, Standing][] => {
      const entry = this.tasks.get(id);
      return entry ? [[id, { station: entry.station, status: 'pending', agent: entry.agent }]] : [];
    });
    return new Map(known);
  }

  async size(): Promise<number> {
    return this.tasks.size;
  }

  outcomes(limit: number) {
    return this.#outbox.read(limit);
  }

  async settle(ids: readonly string[]): Promise<void> {
    if (this.failSettling-- > 0) throw new Error('died before settling');
    await this.#outbox.settle(ids);
  }

  /** What an agent does: the task moves and the outbox tells of it. */
  async act(task_id: string, event_type: string, station: Station, agent = 'agent-001'): Promise<void> {
    const entry = this.tasks.get(task_id)!;
    entry.station = station;
    entry.agent = agent;
    await this.#append({ event_type, task_id, agent_id: agent, station, payload: '{"by":"test"}' });
  }

  station(id: string): Station | undefined {
    return this.tasks.get(id)?.station;
  }
}

export async function aLedger(redis: TestRedis): Promise<TaskLedger> {
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'test', options: redis.options }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 5_000,
    connectTimeoutMs: 5_000,
    name: 'test',
  });
  await connection.start();
  onTestFinished(() => connection.stop());
  const keys = keyspace({ mode: 'standalone' });
  const outbox = new Outbox({ connection, keys });
  return new TaskLedger(outbox, (fields) =>
    connection.commands.xadd(keys.prdOutbox(), '*', ...Object.entries(fields).flat()),
  );
}
