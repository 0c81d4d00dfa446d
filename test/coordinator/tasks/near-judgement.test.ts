import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TaskContent, TaskId } from '../../../src/coordinator/tasks/task.ts';
import { judgeAll } from '../../../src/coordinator/tasks/task-graph.ts';
import { aTaskRoom, expectSound, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom(undefined, { nearFrom: 0 });
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = { ...USUAL, priorityOrder: 'auto' };
});

const edit = (id: string, set: Partial<TaskContent>) => room.tasks.amend([{ task_id: id as TaskId, set }]);

/** Everything that was judged bit by bit is as if all had been judged at once. */
async function expectAsOne(what: string): Promise<void> {
  const { store } = room.tasks;
  const all = await store.graphTasks();
  const { placings, order } = judgeAll(all, room.limits.priorityOrder);
  const [found, expected]: string[][] = [[], []];
  for (const { task_id, rank, quarantine } of all) {
    const placing = placings.get(task_id)!;
    const needs = await room.client.smembers(room.keys.taskDependencies(task_id));
    found!.push(`${task_id} ${rank} ${quarantine} needs ${needs.sort().join(' ')}`);
    expected!.push(`${task_id} ${placing.rank} ${placing.quarantine} needs ${placing.deps.toSorted().join(' ')}`);
    for (const need of needs) expect(await room.client.sismember(room.keys.dependents(need), task_id)).toBe(1);
  }
  expect([what, ...found!]).toEqual([what, ...expected!]);
  const votes = await room.client.hmget(room.keys.taskCounts(), 'order', 'votes_asc', 'votes_desc');
  expect([what, ...votes]).toEqual([what, order.order, String(order.votes.asc), String(order.votes.desc)]);
}

describe('a change that is judged by what is near it', () => {
  const IDS = [...Array.from({ length: 14 }, (_, at) => `TASK-${at + 1}`), 'task-003', 'OTHER-1'];
  const NAMES = [...IDS, '3', '#4', 'task-05', 'Task-006', 'OTHER-9', 'NOBODY'];
  const content = fc.record({
    priority: fc.integer({ min: 1, max: 9 }),
    depends_on: fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 3 }),
  });
  const step = fc.record({ id: fc.constantFrom(...IDS), content });

  test('is the same as all judged at once, after any edits, in any order', { timeout: 120_000 }, async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
      await room.reset();
      // Enough of them that one is a small part; half as spelled here, half to come.
      await room.add(...IDS.slice(0, 9).map((task_id) => ({ task_id })));
      const known = new Set(IDS.slice(0, 9));
      for (const { id, content: set } of steps) {
        if (known.has(id)) await edit(id, set);
        else await room.add({ task_id: id, ...set });
        known.add(id);
        await expectAsOne(`${id} ${JSON.stringify(set)}`);
      }
      await expectSound(room);
    });
    await fc.assert(property, { numRuns: 100 });
  });

  test('a circle that one edit closes and another opens', async () => {
    await room.add(
      ...Array.from({ length: 20 }, (_, at) => ({ task_id: `T-${at}`, depends_on: at ? [`T-${at - 1}`] : [] })),
    );
    await edit('T-0', { depends_on: ['T-9'] });
    await expectAsOne('closed');
    expect(await room.client.hlen(room.keys.quarantine())).toBe(10);
    await edit('T-4', { title: 'Still in it' });
    await expectAsOne('edited within');
    await edit('T-5', { depends_on: [] });
    await expectAsOne('opened');
    expect(await room.client.hlen(room.keys.quarantine())).toBe(0);
  });

  test('a task that is called off hurries nobody any more', async () => {
    const others = Array.from({ length: 10 }, (_, at) => ({ task_id: `O-${at}`, priority: 5 }));
    await room.add({ task_id: 'BLOCKER', priority: 9 }, ...others);
    room.limits = USUAL;
    await room.add({ task_id: 'URGENT', priority: 1, depends_on: ['BLOCKER'] });
    expect((await room.queue())[0]).toBe('BLOCKER');
    await room.tasks.cancelOne('URGENT', 'unwanted', 'ops');
    expect((await room.queue()).at(-1)).toBe('BLOCKER');
    await expectAsOne('called off');
  });

  test('costs no more where there are many others', async () => {
    room.limits = USUAL;
    const cost = async (many: number) => {
      await room.reset();
      await room.add(
        ...Array.from({ length: many }, (_, at) => ({ task_id: `T-${at}`, depends_on: at ? ['T-0'] : [] })),
      );
      const reads = async (change: () => Promise<void>) => {
        await room.client.config('RESETSTAT');
        await change();
        return Number(/cmdstat_hmget:calls=(\d+)/.exec(await room.client.info('commandstats'))![1]);
      };
      const added = await reads(() => room.add({ task_id: 'NEW', depends_on: ['T-0'], priority: 1 }));
      const edited = await reads(() => edit('T-7', { title: 'else', depends_on: ['T-0', 'T-3'] }));
      await expectAsOne('many');
      return added + edited;
    };
    expect(await cost(400)).toBeLessThanOrEqual((await cost(100)) + 5);
  });
});
