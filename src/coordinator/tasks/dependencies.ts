import { idResolver } from './aliases.ts';
import { type Edges, knots, roundTrip } from './cycles.ts';

export interface DependentTask {
  readonly task_id: string;
  /** As people wrote them; other spellings of an id are understood where only one task can be meant. */
  readonly depends_on: readonly string[];
}

/** Why a task must not start although nothing is known to hold it. */
export type Quarantine =
  | { readonly kind: 'self'; readonly reason: string }
  | { readonly kind: 'cycle'; readonly reason: string; readonly cycle: readonly string[] }
  | { readonly kind: 'unknown'; readonly reason: string; readonly missing: readonly string[] }
  | { readonly kind: 'duplicate'; readonly reason: string };

export interface DependencyGraph {
  /** What each task needs first: known ids, each once. */
  readonly dependencies: Edges;
  /** The reverse: who waits for each task. */
  readonly dependents: Edges;
  /** Only those to blame: members of a cycle, not the tasks that wait for one; those simply wait. */
  readonly quarantine: ReadonlyMap<string, Quarantine>;
  readonly cycles: readonly (readonly string[])[];
  /** Dependencies before dependents; members of cycles are left out. */
  readonly order: readonly string[];
}

/** Reads the dependencies of all tasks at once, in time proportional to tasks and edges. */
export function dependencyGraph(tasks: readonly DependentTask[]): DependencyGraph {
  const quarantine = new Map<string, Quarantine>();
  const unique = withoutDuplicates(tasks, quarantine);
  const dependencies = resolved(unique, quarantine);
  const dependents = reversed(dependencies);
  const circling = knots(dependencies);
  const cycles = circling.map((knot) => {
    const cycle = roundTrip(knot, dependencies);
    for (const member of knot) quarantine.set(member, cycleOf(member, knot, cycle));
    return cycle;
  });
  const order = inOrder(dependencies, dependents, new Set(circling.flat()));
  return { dependencies, dependents, quarantine, cycles, order };
}

function withoutDuplicates(tasks: readonly DependentTask[], quarantine: Map<string, Quarantine>) {
  const unique = new Map<string, DependentTask>();
  for (const task of tasks) {
    const { task_id } = task;
    if (!unique.has(task_id)) unique.set(task_id, task);
    else quarantine.set(task_id, { kind: 'duplicate', reason: `more than one task has the id ${task_id}` });
  }
  return unique;
}

function resolved(tasks: ReadonlyMap<string, DependentTask>, quarantine: Map<string, Quarantine>): Edges {
  const resolve = idResolver(tasks.keys());
  const edges = new Map<string, readonly string[]>();
  for (const { task_id, depends_on } of tasks.values()) {
    const known = new Set<string>();
    const missing: string[] = [];
    for (const written of depends_on) {
      const id = resolve(written);
      if (id === undefined) missing.push(written);
      else known.add(id);
    }
    edges.set(task_id, [...known]);
    if (missing.length > 0 && !quarantine.has(task_id)) {
      quarantine.set(task_id, {
        kind: 'unknown',
        reason: unknownReason(missing),
        missing,
      });
    }
  }
  return edges;
}

function reversed(edges: Edges): Edges {
  const reverse = new Map<string, string[]>([...edges.keys()].map((id) => [id, []]));
  for (const [id, needs] of edges) for (const need of needs) reverse.get(need)!.push(id);
  return reverse;
}

/** Why a member of a knot must not start. */
export function cycleOf(member: string, knot: readonly string[], cycle: readonly string[]): Quarantine {
  if (knot.length === 1) return { kind: 'self', reason: `it depends on itself` };
  const others = cycle.includes(member) ? '' : `, with which ${member} is entangled`;
  return { kind: 'cycle', reason: `its dependencies go in a circle: ${shown(cycle)}${others}`, cycle };
}

/** Kahn's algorithm: a task is placed when its last dependency is. */
function inOrder(dependencies: Edges, dependents: Edges, left: ReadonlySet<string>): string[] {
  const open = new Map<string, number>();
  for (const [id, needs] of dependencies) {
    if (!left.has(id)) open.set(id, left.size === 0 ? needs.length : needs.filter((need) => !left.has(need)).length);
  }
  const order = [...open.keys()].filter((id) => open.get(id) === 0);
  for (const id of order) {
    for (const next of dependents.get(id)!) {
      const count = (open.get(next) ?? 0) - 1;
      open.set(next, count);
      if (count === 0) order.push(next);
    }
  }
  return order;
}

export const unknownReason = (missing: readonly string[]): string =>
  `it depends on ${listed(missing)}, of which nothing is known`;

const SHOWN = 8;
const listed = (ids: readonly string[]) =>
  ids.length <= SHOWN ? ids.join(', ') : `${ids.slice(0, SHOWN).join(', ')} and ${ids.length - SHOWN} more`;

/** A long way round is shown by its two ends. */
const shown = (cycle: readonly string[]) =>
  cycle.length <= SHOWN + 1
    ? cycle.join(' → ')
    : `${cycle.slice(0, SHOWN / 2).join(' → ')} → … ${cycle.length - 1 - SHOWN} more … → ${cycle.slice(-SHOWN / 2).join(' → ')}`;
