import type { DependencyGraph } from './dependencies.ts';
import type { FailedDependencyPolicy } from './task.ts';

/** What a failure means for the tasks that waited. */
export interface Fallout {
  /** They fail with it, and with them those that wait for them under the same policy. */
  readonly failed: readonly string[];
  /** They do without it: for them the dependency counts as met. */
  readonly released: readonly string[];
  /** They wait until a person acts: on the failed task, or on them. */
  readonly held: readonly string[];
}

/** Follows a failure through the graph, each edge once. The policy is that of the task that waits. */
export function fallout(
  graph: DependencyGraph,
  failed: string,
  policyOf: (id: string) => FailedDependencyPolicy,
): Fallout {
  const failing = new Set([failed]);
  const released = new Set<string>();
  const held = new Set<string>();
  for (const id of failing) {
    for (const waiting of graph.dependents.get(id) ?? []) {
      switch (policyOf(waiting)) {
        case 'fail':
          failing.add(waiting);
          break;
        case 'skip':
          released.add(waiting);
          break;
        case 'block':
          held.add(waiting);
      }
    }
  }
  failing.delete(failed);
  return { failed: [...failing], released: [...released], held: [...held] };
}
