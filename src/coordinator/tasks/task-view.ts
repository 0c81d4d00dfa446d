import { unlessWrongType } from '../../redis/wrong-type.ts';
import { STATE_OF, type Station, stationOf } from './station.ts';
import { type ExecutionResult, type Task, type TaskId, type TaskState, taskSchema, type WorkStatus } from './task.ts';
import type { Standing } from './task-sink.ts';
import type { TaskStore } from './task-store.ts';

/** A task in a list: enough to choose one. */
export interface TaskRow {
  readonly task_id: string;
  readonly title: string;
  readonly station: Station | 'inconsistent';
  readonly status: WorkStatus;
  readonly agent_id?: string | undefined;
  readonly agent_type: string;
  readonly category: string;
  readonly epic: string;
  readonly priority: number;
  readonly attempts: number;
  /** Why it does not go on, or what its agent said last. */
  readonly because?: string | undefined;
}

export interface TaskDetail extends TaskRow {
  readonly task: Task;
  readonly state: TaskState;
  readonly waits_for: readonly string[];
  readonly depends_on: readonly string[];
  readonly releases: readonly string[];
  readonly parked_on?: string | undefined;
  /** The pause that keeps it: all, a type of agent, or `resource:TYPE:ID`. */
  readonly paused_by?: string | undefined;
  readonly delayed_until?: string | undefined;
  readonly quarantine?: string | undefined;
  /** A person has to roll back its last attempt before it goes on. */
  readonly is_to_undo: boolean;
  readonly lock_id?: string | undefined;
  readonly claimed_at?: string | undefined;
  readonly percent?: number | undefined;
  readonly result?: unknown;
  readonly late_results: readonly unknown[];
}

const ROW = [
  'status',
  'agent',
  'lane',
  'attempts',
  'quarantine',
  'aside',
  'undo',
  'parked',
  'paused',
  'reason',
  'note',
  'lock_id',
  'claimed_at',
  'percent',
] as const;

/** Looking at tasks. Nothing here is on an agent's way. */
export class TaskViews {
  readonly #store: TaskStore;

  constructor(store: TaskStore) {
    this.#store = store;
  }

  async tasks(ids: readonly string[]): Promise<Map<string, Task>> {
    if (ids.length === 0) return new Map();
    const { connection, keys } = this.#store;
    const texts = await connection.commands.mget(ids.map((id) => keys.taskData(this.#store.adeId(id))));
    return new Map(
      ids.flatMap((id, at) => (texts[at] ? [[id, taskSchema.parse(JSON.parse(texts[at])) as Task] as const] : [])),
    );
  }

  async standings(ids: readonly TaskId[]): Promise<Map<TaskId, Standing>> {
    const { connection, keys } = this.#store;
    const found = new Map<TaskId, Standing>();
    const rows = await this.#store.records(ids, ['status', 'agent']);
    const redis = connection.commands;
    await Promise.all(
      ids.map(async (id, at) => {
        const [status, agent] = rows[at] as (string | null)[];
        if (!status) return;
        const ade = this.#store.adeId(id);
        const ends = status === 'failed' ? await redis.hget(keys.taskExecution(ade), 'result') : undefined;
        const state = ((await redis.get(keys.taskState(ade))) ?? STATE_OF[status as WorkStatus]) as TaskState;
        const station = stationOf({
          state,
          status: status as WorkStatus,
          result: (ends ?? undefined) as ExecutionResult,
        });
        const seen = station === 'inconsistent' ? 'waiting' : station;
        const holder = status === 'assigned' || status === 'in_progress' || status === 'completed' ? agent : undefined;
        found.set(id, {
          station: seen,
          status: status as WorkStatus,
          agent: holder?.replace(/^raw\./, '') || undefined,
        });
      }),
    );
    return found;
  }

  async rows(wanted: readonly string[]): Promise<TaskRow[]> {
    const [records, tasks, standings] = await Promise.all([
      this.#store.records(wanted, ROW),
      this.tasks(wanted),
      this.standings(wanted as readonly TaskId[]),
    ]);
    return wanted.flatMap((id, at) => {
      const task = tasks.get(id);
      const standing = standings.get(id as TaskId);
      return task && standing ? [rowOf(task, standing, recordAt(records[at]!))] : [];
    });
  }

  async detail(id: string): Promise<TaskDetail | undefined> {
    const [row] = await this.rows([id]);
    if (!row) return undefined;
    const { connection, keys } = this.#store;
    const redis = connection.commands;
    const ade = this.#store.adeId(id);
    const [tasks, state, waits_for, depends_on, releases, delay, result, late, records] = await Promise.all([
      this.tasks([id]),
      redis.get(keys.taskState(ade)),
      redis.smembers(keys.openDependencies(id)),
      unlessWrongType(redis.smembers(keys.taskDependencies(id)), []),
      redis.smembers(keys.dependents(id)),
      redis.zscore(keys.delayedTasks(), id),
      unlessWrongType(redis.get(keys.taskResult(id)), null),
      redis.lrange(keys.lateResults(id), 0, -1),
      this.#store.records([id], ROW),
    ]);
    const record = recordAt(records[0]!);
    return {
      ...row,
      task: tasks.get(id)!,
      state: state as TaskState,
      waits_for: waits_for.sort(),
      depends_on: depends_on.sort(),
      releases: releases.sort(),
      parked_on: record.parked || undefined,
      paused_by: record.paused || undefined,
      delayed_until: delay ? new Date(Number(delay) * 1000).toISOString() : undefined,
      quarantine: record.quarantine || undefined,
      is_to_undo: record.undo !== '',
      lock_id: record.lock_id || undefined,
      claimed_at: record.claimed_at || undefined,
      percent: record.percent ? Number(record.percent) : undefined,
      result: jsonOr(result),
      late_results: late.map(jsonOr),
    };
  }

  /** The tasks that are next, best first. */
  async ready(limit: number): Promise<Task[]> {
    const { connection, keys } = this.#store;
    await this.#store.current();
    const ids = await connection.commands.zrange(keys.readyOrder(), '0', String(limit - 1));
    return [...(await this.tasks(ids)).values()];
  }

  /** What an agent has a lease on, and until when. */
  async heldBy(agent: string): Promise<{ task_id: string; title: string; expires_at: string }[]> {
    const { connection, keys } = this.#store;
    const ids = await connection.commands.hkeys(keys.agentClaims(agent));
    const tasks = await this.tasks(ids);
    return Promise.all(
      ids.sort().map(async (id) => {
        const ends = await connection.commands.hget(keys.taskLock(this.#store.adeId(id)), 'expires_at');
        return { task_id: id, title: tasks.get(id)?.title ?? '', expires_at: ends ?? '' };
      }),
    );
  }

  async progress(): Promise<Record<ProgressField, number>> {
    const { connection, keys } = this.#store;
    await this.#store.current();
    const counts = await connection.commands.hmget(keys.taskCounts(), ...PROGRESS);
    return Object.fromEntries(PROGRESS.map((field, at) => [field, Number(counts[at] ?? 0)])) as Record<
      ProgressField,
      number
    >;
  }

  /** What the counts should be, by looking at each task. */
  async recount(): Promise<Record<ProgressField, number>> {
    const found = Object.fromEntries(PROGRESS.map((field) => [field, 0])) as Record<ProgressField, number>;
    for (const [status] of await this.#store.records(await this.#store.ids(), ['status'])) {
      found[(status === 'assigned' ? 'in_progress' : status) as ProgressField]++;
      found.total++;
    }
    return found;
  }

  async errors(limit: number): Promise<string[]> {
    const { connection, keys } = this.#store;
    return unlessWrongType(connection.commands.lrange(keys.errorList(), 0, limit - 1), []);
  }
}

export const PROGRESS = ['total', 'pending', 'in_progress', 'completed', 'failed', 'blocked'] as const;
export type ProgressField = (typeof PROGRESS)[number];

type TaskRecordRow = Readonly<Record<(typeof ROW)[number], string>>;
const recordAt = (row: readonly (string | null)[]): TaskRecordRow =>
  Object.fromEntries(ROW.map((field, at) => [field, row[at] ?? ''])) as TaskRecordRow;

function rowOf(task: Task, { station, status, agent }: Standing, record: TaskRecordRow): TaskRow {
  return {
    task_id: task.task_id,
    title: task.title,
    station,
    status,
    agent_id: agent,
    agent_type: record.lane.replace(/^only\./, ''),
    category: task.category,
    epic: task.epic,
    priority: task.priority,
    attempts: Number(record.attempts),
    because: becauseOf(station, record) || undefined,
  };
}

function becauseOf(station: Station, record: TaskRecordRow): string {
  if (record.quarantine) return record.quarantine;
  if (record.aside) return 'put aside by a person';
  if (station === 'working') return record.note;
  if (record.paused) return pausedWhat(record.paused);
  if (record.parked) return `it would collide with ${record.parked}, which is being worked on`;
  return station === 'done' ? '' : record.reason;
}

/** What does not go on while this is paused. */
export function pausedWhat(what: string): string {
  if (what === 'all') return 'all work is paused';
  return what.startsWith('resource:') ? `work on ${what.slice(9)} is paused` : `work of type ${what} is paused`;
}

/** What plain clients wrote need not be JSON. */
export function jsonOr(text: string | null): unknown {
  if (text === null) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
