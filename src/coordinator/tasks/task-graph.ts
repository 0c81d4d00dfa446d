import { z } from 'zod';
import { rankOf } from './admission.ts';
import { type DependencyGraph, dependencyGraph } from './dependencies.ts';
import { type ChosenOrder, type PriorityOrder, priorityOrder, urgencies } from './priority.ts';

/** As much of a task as its place among the others depends on. */
export interface GraphTask {
  readonly task_id: string;
  readonly priority: number;
  readonly depends_on: readonly string[];
  readonly isOpen: boolean;
  /** What its source has against it; what the graph has against it is judged anew each time. */
  readonly complaint: string;
}

/** What follows for one task from all of them. */
export interface Placing {
  readonly rank: number;
  readonly deps: readonly string[];
  readonly quarantine: string;
}

export interface Judgement {
  readonly placings: ReadonlyMap<string, Placing>;
  readonly graph: DependencyGraph;
  readonly order: ChosenOrder;
}

/** Judges all tasks at once: who waits for whom, who must not start, who is how urgent. */
export function judgeAll(tasks: readonly GraphTask[], wanted: PriorityOrder): Judgement {
  const graph = dependencyGraph(tasks);
  const priorities = new Map(tasks.map(({ task_id, priority }) => [task_id, priority]));
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  const order = priorityOrder(wanted, graph, priorities);
  const quarantineOf = (id: string) => byId.get(id)?.complaint || (graph.quarantine.get(id)?.reason ?? '');
  const hurries = (id: string) => (byId.get(id)?.isOpen ?? false) && quarantineOf(id) === '';
  const urgency = urgencies(graph, priorities, { order: order.order, hurries });
  const placing = ({ task_id }: GraphTask): Placing => ({
    rank: rankOf(urgency.get(task_id) ?? 0),
    deps: graph.dependencies.get(task_id) ?? [],
    quarantine: quarantineOf(task_id),
  });
  return { placings: new Map(tasks.map((task) => [task.task_id, placing(task)])), graph, order };
}

const wantsSchema = z.object({ priority: z.number(), depends_on: z.array(z.string()) });

/** A row of the queue's own records, as HMGET gives it: status, score, wants, complaint, quarantine. */
export const GRAPH_FIELDS = ['status', 'score', 'wants', 'complaint', 'quarantine'] as const;

export interface KnownTask extends GraphTask {
  readonly rank: number;
  readonly quarantine: string;
}

export function knownTask(task_id: string, row: readonly (string | null)[]): KnownTask | undefined {
  const [status, score, wants, complaint, quarantine] = row;
  if (!status) return undefined;
  return {
    task_id,
    ...wantsSchema.parse(JSON.parse(wants ?? '{"priority":0,"depends_on":[]}')),
    isOpen: status !== 'completed' && status !== 'failed',
    complaint: complaint ?? '',
    quarantine: quarantine ?? '',
    rank: Math.floor(Number(score) / 2 ** 32),
  };
}
