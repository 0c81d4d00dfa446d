import type { DependencyGraph } from './dependencies.ts';

/** asc: 1 comes first. desc: 10 comes first. auto: whichever the dependencies speak for. */
export type PriorityOrder = 'asc' | 'desc' | 'auto';

export interface ChosenOrder {
  readonly order: 'asc' | 'desc';
  /** Why, for the log. */
  readonly because: string;
  /** Edges whose dependency has the lower number, and the higher one. */
  readonly votes: { readonly asc: number; readonly desc: number };
}

/**
 * Which end of the priorities is urgent. Files disagree, and most do not say; but whoever orders work gives what must
 * come first the better priority, so each dependency edge is a vote. No votes or a tie: ascending, as 1 reads as first.
 */
export function priorityOrder(wanted: PriorityOrder, graph: DependencyGraph, priorities: Priorities): ChosenOrder {
  const votes = { asc: 0, desc: 0 };
  for (const [id, needs] of graph.dependencies) {
    for (const need of needs) {
      const vote = voteOf(priorities.get(id) ?? 0, priorities.get(need) ?? 0);
      if (vote) votes[vote]++;
    }
  }
  return chosenOrder(wanted, votes);
}

/** Which direction an edge speaks for, by the priorities of the one that waits and of the one it needs. */
export function voteOf(waiting: number, needed: number): 'asc' | 'desc' | undefined {
  if (waiting === needed) return undefined;
  return waiting > needed ? 'asc' : 'desc';
}

export function chosenOrder(wanted: PriorityOrder, votes: ChosenOrder['votes']): ChosenOrder {
  if (wanted !== 'auto') return { order: wanted, because: 'it is set so, or the task file says it', votes };
  if (votes.asc === votes.desc) return { order: 'asc', because: 'the dependencies do not tell', votes };
  const order = votes.asc > votes.desc ? 'asc' : 'desc';
  return { order, because: `${votes[order]} of ${votes.asc + votes.desc} dependencies agree`, votes };
}

export type Priorities = ReadonlyMap<string, number>;

export interface UrgencyOptions {
  readonly order: 'asc' | 'desc';
  /** A task that has ended, or must not start, hurries nobody. */
  readonly hurries: (id: string) => boolean;
}

/**
 * How urgent each task is; the higher the sooner. A task is at least as urgent as every open task that waits for it,
 * at whatever distance, so that an unimportant blocker of something critical is not left lying.
 */
export function urgencies(graph: DependencyGraph, priorities: Priorities, { order, hurries }: UrgencyOptions) {
  const urgency = new Map([...graph.dependencies.keys()].map((id) => [id, urgencyOf(priorities.get(id) ?? 0, order)]));
  for (const id of graph.order.toReversed()) {
    if (!hurries(id)) continue;
    for (const need of graph.dependencies.get(id)!) urgency.set(need, Math.max(urgency.get(need)!, urgency.get(id)!));
  }
  return urgency;
}

/** By itself; the higher the sooner. */
export const urgencyOf = (priority: number, order: 'asc' | 'desc'): number =>
  order === 'desc' ? priority : 0 - priority;
