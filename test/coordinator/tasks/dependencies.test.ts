import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DependentTask, dependencyGraph } from '../../../src/coordinator/tasks/dependencies.ts';

const graphOf = (tasks: Record<string, readonly string[]>) =>
  dependencyGraph(Object.entries(tasks).map(([task_id, depends_on]) => ({ task_id, depends_on })));

describe('what is wrong with a dependency keeps back the tasks to blame, and only those', () => {
  test('a task that depends on itself', () => {
    const { quarantine } = graphOf({ A: ['A'], B: ['A'], C: [] });
    expect([...quarantine]).toEqual([['A', { kind: 'self', reason: 'it depends on itself' }]]);
  });

  test('two tasks, and three, that wait for one another; the cycle is named and outsiders run', () => {
    const { quarantine, cycles, order } = graphOf({
      A: ['B'],
      B: ['A'],
      C: ['D'],
      D: ['E'],
      E: ['C'],
      F: [],
      G: ['F'],
      H: ['A'],
    });
    expect(cycles).toEqual(
      expect.arrayContaining([
        ['A', 'B', 'A'],
        ['C', 'D', 'E', 'C'],
      ]),
    );
    expect([...quarantine.keys()].sort()).toEqual(['A', 'B', 'C', 'D', 'E']);
    expect(quarantine.get('E')).toMatchObject({ reason: 'its dependencies go in a circle: C → D → E → C' });
    expect(order).toEqual(expect.arrayContaining(['F', 'G', 'H']));
  });

  test('a task that is entangled in a cycle beside the one that is named', () => {
    const { quarantine } = graphOf({ A: ['B'], B: ['A', 'C'], C: ['D'], D: ['B'] });
    expect(quarantine.get('D')?.reason).toBe('its dependencies go in a circle: A → B → A, with which D is entangled');
  });

  test('a dependency of which nothing is known', () => {
    const { quarantine, dependencies } = graphOf({ A: ['NOPE', 'B'], B: [] });
    expect(quarantine.get('A')).toEqual({
      kind: 'unknown',
      reason: 'it depends on NOPE, of which nothing is known',
      missing: ['NOPE'],
    });
    expect(dependencies.get('A')).toEqual(['B']);
  });

  test('an id that two tasks have', () => {
    const { quarantine } = dependencyGraph([
      { task_id: 'A', depends_on: [] },
      { task_id: 'A', depends_on: ['B'] },
      { task_id: 'B', depends_on: [] },
    ]);
    expect([...quarantine]).toEqual([['A', { kind: 'duplicate', reason: 'more than one task has the id A' }]]);
  });

  test('a cycle of thousands is named by its ends', () => {
    const ids = Array.from({ length: 5000 }, (_, at) => `T${String(at).padStart(4, '0')}`);
    const { cycles, quarantine } = dependencyGraph(
      ids.map((task_id, at) => ({ task_id, depends_on: [ids[(at + 1) % ids.length]!] })),
    );
    expect(cycles[0]).toHaveLength(5001);
    expect(quarantine.get('T2500')?.reason.length).toBeLessThan(200);
  });
});

describe('ids as people write them', () => {
  test('other spellings are understood where only one task can be meant', () => {
    const { dependencies, quarantine } = graphOf({ 'TASK-033': [], A: ['TASK-33', '#33', '33', 'task-033'] });
    expect(dependencies.get('A')).toEqual(['TASK-033']);
    expect(quarantine.size).toBe(0);
  });

  test('TASK-33 and TASK-033 are two tasks, and then 33 is neither', () => {
    const { dependencies, quarantine } = graphOf({ 'TASK-033': [], 'TASK-33': [], A: ['TASK-33'], B: ['33'] });
    expect(dependencies.get('A')).toEqual(['TASK-33']);
    expect(quarantine.get('B')?.kind).toBe('unknown');
  });

  test('a number is not taken for that of another series', () => {
    expect(graphOf({ 'PRD003-NAV-001': [], A: ['1'] }).quarantine.get('A')?.kind).toBe('unknown');
    expect(graphOf({ 'PRD003-NAV-001': [], A: ['prd003-nav-1'] }).dependencies.get('A')).toEqual(['PRD003-NAV-001']);
  });

  test('a dependency that is named twice is one, and 5,000 are no trouble', () => {
    const many = Array.from({ length: 5000 }, (_, at) => `D${at}`);
    const graph = dependencyGraph([
      ...many.map((task_id) => ({ task_id, depends_on: [] })),
      { task_id: 'A', depends_on: [...many, ...many] },
    ]);
    expect(graph.dependencies.get('A')).toHaveLength(5000);
  });
});

describe('large graphs', () => {
  const SIZE = 10_000;
  const id = (at: number) => `T${at}`;
  const shapes: Record<string, DependentTask[]> = {
    'a chain of 10,000': Array.from({ length: SIZE }, (_, at) => ({
      task_id: id(at),
      depends_on: at > 0 ? [id(at - 1)] : [],
    })),
    'a star of one and 9,999': Array.from({ length: SIZE }, (_, at) => ({
      task_id: id(at),
      depends_on: at > 0 ? [id(0)] : [],
    })),
    '100 layers of 100, each on the whole layer before': Array.from({ length: SIZE }, (_, at) => ({
      task_id: id(at),
      depends_on: at < 100 ? [] : Array.from({ length: 100 }, (_, of) => id((Math.floor(at / 100) - 1) * 100 + of)),
    })),
  };
  for (const [name, tasks] of Object.entries(shapes)) {
    test(`${name} is put in order, forwards and backwards`, () => {
      for (const given of [tasks, tasks.toReversed()]) {
        const graph = dependencyGraph(given);
        expect(graph.order).toHaveLength(SIZE);
        expect(graph.quarantine.size).toBe(0);
        expect(breaksOrder(graph.order, tasks)).toBeUndefined();
      }
    });
  }
});

test('any graph: members of cycles are kept back, all others come after what they need', () => {
  fc.assert(
    fc.property(aGraph(), (tasks) => {
      const graph = dependencyGraph(tasks);
      const circling = new Set(tasks.filter(({ task_id }) => reaches(tasks, task_id)).map(({ task_id }) => task_id));
      const kept = [...graph.quarantine].filter(([, { kind }]) => kind === 'cycle' || kind === 'self');
      expect(new Set(kept.map(([task_id]) => task_id))).toEqual(circling);
      expect(new Set(graph.order)).toEqual(
        new Set(tasks.map(({ task_id }) => task_id).filter((task_id) => !circling.has(task_id))),
      );
      const free = tasks.filter(({ task_id }) => !circling.has(task_id));
      const needs = free.map((task) => ({
        ...task,
        depends_on: task.depends_on.filter((need) => !circling.has(need)),
      }));
      expect(breaksOrder(graph.order, needs)).toBeUndefined();
      for (const cycle of graph.cycles) {
        const edges = cycle.slice(1).map((to, at) => graph.dependencies.get(cycle[at]!)?.includes(to));
        expect(edges.every(Boolean)).toBe(true);
        expect(cycle[0]).toBe(cycle.at(-1));
      }
    }),
  );
});

function aGraph(): fc.Arbitrary<DependentTask[]> {
  return fc.integer({ min: 1, max: 12 }).chain((size) => {
    const ids = Array.from({ length: size }, (_, at) => `T${at}`);
    const tasks = ids.map((task_id) =>
      fc.subarray(ids, { maxLength: Math.min(3, size) }).map((depends_on): DependentTask => ({ task_id, depends_on })),
    );
    return fc.tuple(...tasks);
  });
}

/** The plain way to find members of cycles: can it get back to itself? */
function reaches(tasks: readonly DependentTask[], start: string): boolean {
  const needs = new Map(tasks.map(({ task_id, depends_on }) => [task_id, depends_on]));
  const seen = new Set<string>(needs.get(start));
  for (const at of seen) for (const next of needs.get(at) ?? []) seen.add(next);
  return seen.has(start);
}

function breaksOrder(order: readonly string[], tasks: readonly DependentTask[]): string | undefined {
  const place = new Map(order.map((id, at) => [id, at]));
  return tasks.find(({ task_id, depends_on }) => depends_on.some((need) => place.get(need)! > place.get(task_id)!))
    ?.task_id;
}
