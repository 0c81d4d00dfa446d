import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dependencyGraph } from '../../../src/coordinator/tasks/dependencies.ts';
import { priorityOrder, urgencies } from '../../../src/coordinator/tasks/priority.ts';

type Row = readonly [id: string, priority: number, ...depends_on: string[]];
const read = (rows: readonly Row[]) => ({
  graph: dependencyGraph(rows.map(([task_id, , ...depends_on]) => ({ task_id, depends_on }))),
  priorities: new Map(rows.map(([id, priority]) => [id, priority])),
});

describe('which end is urgent', () => {
  const lowFirst: Row[] = [
    ['A', 1],
    ['B', 2, 'A'],
    ['C', 3, 'B'],
    ['D', 2, 'C'],
  ];

  test('auto goes by the majority of dependencies: what must come first has the better priority', () => {
    const { graph, priorities } = read(lowFirst);
    expect(priorityOrder('auto', graph, priorities)).toEqual({
      order: 'asc',
      because: '2 of 3 dependencies agree',
      votes: { asc: 2, desc: 1 },
    });
    const upsideDown = new Map([...priorities].map(([id, priority]) => [id, 11 - priority]));
    expect(priorityOrder('auto', graph, upsideDown).order).toBe('desc');
  });

  test('without edges, with equal priorities or on a tie, 1 comes first', () => {
    for (const rows of [
      [
        ['A', 1],
        ['B', 9],
      ],
      [
        ['A', 5],
        ['B', 5, 'A'],
      ],
      [
        ['A', 1],
        ['B', 2, 'A'],
        ['C', 1, 'B'],
      ],
    ] as Row[][]) {
      const { graph, priorities } = read(rows);
      expect(priorityOrder('auto', graph, priorities)).toMatchObject({
        order: 'asc',
        because: 'the dependencies do not tell',
      });
    }
  });

  test('what is set is not overruled', () => {
    const { graph, priorities } = read(lowFirst);
    expect(priorityOrder('desc', graph, priorities)).toMatchObject({
      order: 'desc',
      because: expect.stringContaining('set so'),
    });
  });
});

describe('urgency', () => {
  test('an unimportant task that blocks a critical one is as urgent as that, at any distance', () => {
    const { graph, priorities } = read([
      ['base', 9],
      ['middle', 8, 'base'],
      ['critical', 1, 'middle'],
      ['other', 5],
    ]);
    const urgency = urgencies(graph, priorities, { order: 'asc', hurries: () => true });
    expect(urgency.get('base')).toBe(urgency.get('critical'));
    expect(urgency.get('base')).toBeGreaterThan(urgency.get('other')!);
  });

  test('a task that has ended hurries nobody', () => {
    const { graph, priorities } = read([
      ['base', 9],
      ['critical', 1, 'base'],
    ]);
    const urgency = urgencies(graph, priorities, { order: 'asc', hurries: (id) => id !== 'critical' });
    expect(urgency.get('base')).toBe(-9);
  });

  test('the higher number first, where that is the order', () => {
    const { graph, priorities } = read([
      ['base', 1],
      ['critical', 10, 'base'],
      ['other', 5],
    ]);
    const urgency = urgencies(graph, priorities, { order: 'desc', hurries: () => true });
    expect([urgency.get('base'), urgency.get('critical'), urgency.get('other')]).toEqual([10, 10, 5]);
  });

  test('runs down a chain of 10,000 in one pass', () => {
    const rows = Array.from(
      { length: 10_000 },
      (_, at): Row => [`T${at}`, 9_999 - at, ...(at > 0 ? [`T${at - 1}`] : [])],
    );
    const { graph, priorities } = read(rows);
    expect(urgencies(graph, priorities, { order: 'asc', hurries: () => true }).get('T0')).toBe(0);
  });

  test('is that of the most urgent task it leads to, in any graph', () => {
    const aRow = (ids: readonly string[], at: number) =>
      fc
        .tuple(fc.integer({ min: -5, max: 10 }), fc.subarray(ids.slice(0, at), { maxLength: Math.min(3, at) }))
        .map(([priority, needs]): Row => [ids[at]!, priority, ...needs]);
    const aDag = fc.integer({ min: 1, max: 10 }).chain((size) => {
      const ids = Array.from({ length: size }, (_, at) => `T${at}`);
      return fc.tuple(...ids.map((_, at) => aRow(ids, at)));
    });
    fc.assert(
      fc.property(aDag, fc.constantFrom('asc', 'desc'), (rows, order) => {
        const { graph, priorities } = read(rows);
        const urgency = urgencies(graph, priorities, { order, hurries: () => true });
        for (const [id] of rows) {
          const led = new Set([id]);
          for (const at of led) for (const next of graph.dependents.get(at)!) led.add(next);
          const best = Math.max(
            ...[...led].map((one) => (order === 'desc' ? priorities.get(one)! : 0 - priorities.get(one)!)),
          );
          expect(urgency.get(id)).toBe(best);
        }
      }),
    );
  });
});
