import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { Reconciler } from '../../../src/coordinator/tasks/reconcile.ts';
import { silentLog } from '../../../src/log.ts';
import { aTaskRoom, expectSound, type Sketch, type TaskRoom, USUAL } from './room.ts';

let room: TaskRoom;
let reconciler: Reconciler;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterAll(() => room[Symbol.asyncDispose]());
beforeEach(async () => {
  await room.reset();
  room.limits = USUAL;
  const { tasks, locks, events, keyspace } = room;
  const more = { clock: systemClock, log: silentLog, limits: () => room.limits };
  reconciler = new Reconciler({ tasks, locks, events, keyspace, ...more });
});
afterEach(() => expectSound(room));

const WHY = { by: 'ops', reason: 'deploy', ends: 0 };
const on = (task_id: string, ...files: string[]): Sketch => ({ task_id, files_to_modify: files });
const claim = (agent: string, task?: string) => room.tasks.work.claim({ agent, task });

describe('a resource that is paused', () => {
  test('keeps its tasks from every agent, plain ones included, and no others', async () => {
    await room.add(on('DEEP', 'src/db/schema.ts'), on('ABOVE', 'src'), on('BESIDE', 'docs/a.md'), 'FREE');
    expect(await room.tasks.pause('resource:./src/db/', WHY)).toBe(2);
    expect(await room.queue()).toEqual(['BESIDE', 'FREE']);
    expect(await claim('ann')).toMatchObject({ task: { task_id: 'BESIDE' } });
    expect(await claim('bob', 'DEEP')).toEqual({ outcome: 'busy', why: 'held', holder: '' });
    await room.add(on('NEW', 'src/db/new.ts'));
    await reconciler.once();
    expect(await room.queue()).toEqual(['FREE']);
    expect(await room.tasks.views.pausesOf('DEEP')).toMatchObject([{ what: 'resource:file:src/db', pause: WHY }]);
    expect(await room.tasks.views.pausesOf('FREE')).toEqual([]);

    expect(await room.tasks.resume('resource:file:src/db')).toBe(4);
    expect(await room.queue()).toEqual(['DEEP', 'ABOVE', 'FREE', 'NEW']);
    expect(await claim('bob', 'DEEP')).toMatchObject({ outcome: 'claimed' });
    expect(await room.client.exists(room.keys.pauses(), room.keys.pausedResources())).toBe(0);
  });

  test('is paused for readers, too, and by its type and name where it is no path', async () => {
    const resources = [{ type: 'database', id: 'prod db', mode: 'shared' }] as never;
    await room.add({ task_id: 'READ', resources }, 'FREE');
    await room.tasks.pause('resource:database:prod db', WHY);
    expect(await room.queue()).toEqual(['FREE']);
    await room.tasks.resume('resource:database:prod db');
    expect(await room.queue()).toEqual(['READ', 'FREE']);
  });

  test('goes on by itself when its time is over', async () => {
    await room.add(on('A', 'a.ts'));
    await room.tasks.pause('resource:a.ts', { ...WHY, ends: Math.ceil(systemClock.now() / 1000) + 60 });
    expect(await claim('ann')).toMatchObject({ outcome: 'none' });
    room.shift(61_000);
    await reconciler.once();
    await reconciler.once();
    expect(await room.queue()).toEqual(['A']);
    expect(await room.client.exists(room.keys.pauses(), room.keys.pausedResources())).toBe(0);
    expect(await claim('ann')).toMatchObject({ outcome: 'claimed' });
  });
});

describe('a list of tasks that can run side by side', () => {
  beforeEach(() => {
    room.limits = { ...USUAL, isExclusive: true };
  });

  test('holds no two that would collide, nor one that would collide with what runs', async () => {
    await room.add(
      on('A', 'src/a.ts'),
      on('SRC', 'src'),
      on('B', 'src/b.ts'),
      on('A2', 'src/a.ts'),
      on('DOCS', 'docs'),
      'FREE',
    );
    expect(await room.queue()).toEqual(['A', 'B', 'DOCS', 'FREE']);
    await claim('ann', 'A');
    await reconciler.once();
    expect(await room.queue()).toEqual(['B', 'DOCS', 'FREE']);
    await room.tasks.work.complete({ task: 'A', agent: 'ann' });
    await reconciler.once();
    expect(await room.queue()).toEqual(['SRC', 'DOCS', 'FREE']);
  });

  test('readers of one thing are side by side', async () => {
    const reading = (task_id: string, mode: string) => ({
      task_id,
      resources: [{ type: 'database', id: 'prod', mode }] as never,
    });
    await room.add(reading('R1', 'shared'), reading('R2', 'shared'), reading('W', 'exclusive'));
    expect(await room.queue()).toEqual(['R1', 'R2']);
  });

  test('binds plain clients: whatever they pop together can be worked on together', async () => {
    await room.add(on('A', 'a.ts'), on('A2', 'a.ts'), on('B', 'b.ts'), on('B2', 'b.ts', 'a.ts'));
    const popped = [];
    for (let count = 0; count < 3; count++) popped.push(await room.plain.rpop(room.keys.taskQueue()));
    expect(popped).toEqual(['A', 'B', null]);
    await reconciler.once();
    expect(await room.queue()).toEqual([]);
    expect(await claim('ann')).toMatchObject({ outcome: 'none' });
    await room.plain.set(room.keys.taskResult('A'), '{"notes":"done"}');
    await room.plain.set(room.keys.taskStatus('A'), 'completed');
    await reconciler.once();
    await reconciler.once();
    expect(await room.queue()).toEqual(['A2']);
  });
});

test('what a plain client works on is not handed to others beside it', async () => {
  await room.add(on('A', 'src/a.ts'), on('SRC', 'src'));
  await room.plain.rpop(room.keys.taskQueue());
  await reconciler.once();
  expect(await claim('ann')).toMatchObject({ outcome: 'none' });
  room.shift(31_000);
  await reconciler.once();
  expect(await room.queue()).toEqual(['A', 'SRC']);
});
