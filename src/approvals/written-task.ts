import type { Task, TaskState } from '../coordinator/tasks/task.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import { ReeveError } from '../errors.ts';

/** A task as it stands, and who made it so. */
export interface WrittenTask {
  readonly task: Task;
  readonly state: TaskState;
  readonly version: number;
  readonly makers: readonly string[];
  readonly author: string;
}

/** Whoever wrote a task that came in by a file. */
const FILES = ['prd', 'api'];
export const isFile = (author: string): boolean => FILES.includes(author);

export async function readTask(tasks: Tasks, id: string): Promise<WrittenTask> {
  const { store, views } = tasks;
  const { connection, keys } = store;
  const [redis, ade] = [connection.commands, store.adeId(id)];
  const [found, state, version, made] = await Promise.all([
    views.tasks([id]),
    redis.get(keys.taskState(ade)),
    redis.hget(keys.taskConfig(ade), 'version'),
    redis.hmget(keys.taskMetadata(ade), 'author_id', 'editor_id'),
  ]);
  const task = found.get(id);
  if (!task || !state) throw new ReeveError('TASK_UNKNOWN', { task: id });
  const makers = made.filter((one) => one !== null);
  return { task, state: state as TaskState, version: Number(version ?? 1), makers, author: made[0] ?? '' };
}

export async function authorOf({ store }: Tasks, task: string): Promise<string | undefined> {
  const { connection, keys } = store;
  return (await connection.commands.hget(keys.taskMetadata(store.adeId(task)), 'author_id')) ?? undefined;
}

/** All who had a hand in it, by its id in ADE. None of them agrees to it. */
export async function makersOf({ store }: Tasks, ade: string): Promise<string[]> {
  const { connection, keys } = store;
  const made = await connection.commands.hmget(keys.taskMetadata(ade), 'author_id', 'editor_id', 'submitted_by');
  return made.filter((one) => one !== null);
}

/** When it last came before the gate: whoever was asked earlier was asked about something else, or for nothing. */
export async function submittedAt({ store }: Tasks, ade: string): Promise<string> {
  const { connection, keys } = store;
  return (await connection.commands.hget(keys.taskMetadata(ade), 'submitted_at')) ?? '';
}
