import { TASK_STATES, type Task } from '../coordinator/tasks/task.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import type { Assignment } from './assignment.ts';
import type { ApprovalDesk } from './desk.ts';
import type { Risk } from './risk.ts';

/** A task that was ruled upon, with the risk it had then. */
export interface PastTask {
  readonly task: Task;
  readonly risk: Risk;
  readonly author: string;
}

export interface Replay {
  readonly looked_at: number;
  readonly changed: number;
  /** Only those for which something would be different. */
  readonly items: readonly {
    readonly task_id: string;
    readonly risk: number;
    readonly before: string;
    readonly after: string;
    readonly because: string;
  }[];
}

/** The newest tasks whose risk is known, whatever became of them. */
export async function pastTasks(tasks: Tasks, desk: ApprovalDesk, limit: number): Promise<PastTask[]> {
  const { connection, keys } = tasks.store;
  const redis = connection.commands;
  const head = tasks.store.common().head;
  const lists = await Promise.all(
    TASK_STATES.map((state) => redis.zrevrange(keys.tasksByState(state), 0, limit - 1, 'WITHSCORES')),
  );
  const dated = lists.flatMap((flat) =>
    flat.flatMap((id, at) => (at % 2 === 0 && id.startsWith(head) ? [{ id, born: Number(flat[at + 1]) }] : [])),
  );
  const newest = dated.sort((a, b) => b.born - a.born).slice(0, limit);
  const known = await tasks.views.tasks(newest.map(({ id }) => id.slice(head.length)));
  const found = await Promise.all(
    newest.map(async ({ id }): Promise<PastTask | undefined> => {
      const task = known.get(id.slice(head.length));
      const [risk, author] = await Promise.all([desk.risk(id), redis.hget(keys.taskMetadata(id), 'author_id')]);
      return task && risk ? { task, risk, author: author ?? '' } : undefined;
    }),
  );
  return found.filter((one) => one !== undefined);
}

/** What a change of the rules would have meant. */
export function compare(
  past: readonly PastTask[],
  before: (one: PastTask) => Assignment,
  after: (one: PastTask) => Assignment,
): Replay {
  const items = past.flatMap((one) => {
    const [was, would] = [before(one), after(one)];
    if (inWords(was) === inWords(would)) return [];
    const { task, risk } = one;
    return [
      { task_id: task.task_id, risk: risk.score, before: inWords(was), after: inWords(would), because: would.because },
    ];
  });
  return { looked_at: past.length, changed: items.length, items };
}

function inWords(assignment: Assignment): string {
  switch (assignment.outcome) {
    case 'unasked':
      return 'passes unasked';
    case 'nobody':
      return 'nobody could agree';
    case 'ask':
      return assignment.needs.map(({ policy_id, min }) => `${min} by ${policy_id}`).join(', ');
  }
}
