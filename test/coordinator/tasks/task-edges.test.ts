import { describe, expect, test } from 'vitest';
import { inATaskRoom, type TaskRoom } from './room.ts';

let room: TaskRoom;
inATaskRoom((made) => {
  room = made;
});

const chain = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ task_id: `T-${at}`, depends_on: at ? [`T-${at - 1}`] : [] }));

describe('what waits for what', () => {
  test('is read in pages, each of which costs what it shows', async () => {
    await room.add(...chain(300));
    const seen: object[] = [];
    let cursor: string | undefined;
    do {
      await room.client.config('RESETSTAT');
      const page = await room.tasks.edges.page({ limit: 40, cursor });
      const reads = /cmdstat_hmget:calls=(\d+)/.exec(await room.client.info('commandstats'))?.[1];
      expect(Number(reads)).toBeLessThanOrEqual(45);
      seen.push(...page.items.map(({ task_id, depends_on }) => ({ task_id, depends_on })));
      cursor = page.next;
    } while (cursor);
    expect(seen).toEqual(chain(300));
  });

  test('names what a task in quarantine wants, though nothing is known of it', async () => {
    await room.add('A', { task_id: 'B', depends_on: ['A', 'NOBODY'] });
    const { items } = await room.tasks.edges.page({ limit: 10 });
    expect(items).toEqual([
      { task_id: 'A', status: 'pending', depends_on: [] },
      { task_id: 'B', status: 'blocked', depends_on: ['A', 'NOBODY'] },
    ]);
  });

  test('is shown around one task, so many steps in both directions', async () => {
    await room.add(...chain(20));
    const around = async (hops: number) =>
      (await room.tasks.edges.around('T-9', { hops, limit: 100 }))?.items.map(({ task_id }) => task_id);
    expect(await around(1)).toEqual(['T-9', 'T-8', 'T-10']);
    expect(await around(2)).toEqual(['T-9', 'T-8', 'T-10', 'T-7', 'T-11']);
    expect(await around(100)).toHaveLength(20);
    expect(await room.tasks.edges.around('NOBODY', { hops: 2, limit: 100 })).toBeUndefined();
  });

  test('is cut where more is near than was asked for, however many wait for one task', async () => {
    const leaves = Array.from({ length: 1_000 }, (_, at) => ({ task_id: `L-${at}`, depends_on: ['HUB'] }));
    await room.add('HUB', ...leaves);
    await room.client.config('RESETSTAT');
    const found = await room.tasks.edges.around('HUB', { hops: 3, limit: 20 });
    expect(found).toMatchObject({ isCut: true });
    expect(found?.items).toHaveLength(20);
    expect(found?.items[0]?.task_id).toBe('HUB');
    const reads = /cmdstat_hmget:calls=(\d+)/.exec(await room.client.info('commandstats'))?.[1];
    expect(Number(reads)).toBeLessThanOrEqual(30);
    const whole = await room.tasks.edges.around('HUB', { hops: 1, limit: 2_000 });
    expect(whole).toMatchObject({ isCut: false });
    expect(whole?.items).toHaveLength(1_001);
  });

  test('is read also where somebody left another type at a public name', async () => {
    await room.add('A', { task_id: 'B', depends_on: ['A'] });
    await room.client.del(room.keys.taskDependencies('B'));
    await room.client.set(room.keys.taskDependencies('B'), 'mine');
    expect(await room.tasks.edges.page({ limit: 10 })).toMatchObject({ items: [{ task_id: 'A' }, { task_id: 'B' }] });
    await room.client.del(room.keys.taskDependencies('B'));
  });
});
