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
    expect(await room.tasks.pauses.pause('resource:./src/db/', WHY)).toBe(2);
    expect(await room.queue()).toEqual(['BESIDE', 'FREE']);
    expect(await claim('ann')).toMatchObject({ task: { task_id: 'BESIDE' } });
    expect(await claim('bob', 'DEEP')).toEqual({ outcome: 'busy', why: 'blocked', holder: '' });
    await room.add(on('NEW', 'src/db/new.ts'));
    await reconciler.once();
    expect(await room.queue()).toEqual(['FREE']);
    expect(await room.tasks.views.detail('DEEP')).toMatchObject({
      paused_by: 'resource:file:src/db',
      station: 'waiting',
    });
    expect(await room.tasks.views.detail('FREE')).not.toHaveProperty('paused_by', expect.anything());

    expect(await room.tasks.pauses.resume('resource:file:src/db')).toBe(4);
    expect(await room.queue()).toEqual(['DEEP', 'ABOVE', 'FREE', 'NEW']);
    expect(await claim('bob', 'DEEP')).toMatchObject({ outcome: 'claimed' });
    expect(await room.client.exists(room.keys.pauses(), room.keys.pausedResources())).toBe(0);
  });

  test('is paused for readers, too, and by its type and name where it is no path', async () => {
    const resources = [{ type: 'database', id: 'prod db', mode: 'shared' }] as never;
    await room.add({ task_id: 'READ', resources }, 'FREE');
    await room.tasks.pauses.pause('resource:database:prod db', WHY);
    expect(await room.queue()).toEqual(['FREE']);
    await room.tasks.pauses.resume('resource:database:prod db');
    expect(await room.queue()).toEqual(['READ', 'FREE']);
  });

  test('goes on by itself when its time is over', async () => {
    await room.add(on('A', 'a.ts'));
    await room.tasks.pauses.pause('resource:a.ts', { ...WHY, ends: Math.ceil(systemClock.now() / 1000) + 60 });
    expect(await claim('ann')).toMatchObject({ outcome: 'none' });
    room.shift(61_000);
    await reconciler.once();
    await reconciler.once();
    expect(await room.queue()).toEqual(['A']);
    expect(await room.client.exists(room.keys.pauses(), room.keys.pausedResources())).toBe(0);
    expect(await claim('ann')).toMatchObject({ outcome: 'claimed' });
  });
});

describe('tasks that are paused', () => {
  const statuses = (...ids: string[]) => Promise.all(ids.map((id) => room.status(id)));

  test('are blocked and counted so, whatever is paused, and come back in their order', async () => {
    await room.add(
      { task_id: 'A', priority: 3 },
      { task_id: 'B', priority: 1, agent_type: 'codex' },
      { task_id: 'C', priority: 2, files_to_modify: ['a.ts'] },
      { task_id: 'D', priority: 4 },
      { task_id: 'E', depends_on: ['D'] },
    );
    await room.tasks.pauses.pause('all', WHY);
    expect(await statuses('A', 'B', 'C', 'D', 'E')).toEqual(['blocked', 'blocked', 'blocked', 'blocked', 'blocked']);
    expect(await room.tasks.views.progress()).toMatchObject({ total: 5, pending: 0, blocked: 5 });
    expect(await room.queue()).toEqual([]);
    await room.tasks.pauses.pause('codex', WHY);
    await room.tasks.pauses.pause('resource:a.ts', WHY);
    await room.tasks.pauses.resume('all');
    expect(await statuses('A', 'B', 'C', 'D', 'E')).toEqual(['pending', 'blocked', 'blocked', 'pending', 'blocked']);
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 2, blocked: 3 });
    expect(await room.queue()).toEqual(['A', 'D']);
    expect(await claim('ann')).toMatchObject({ task: { task_id: 'A' } });
    await room.tasks.pauses.resume('codex');
    expect(await room.queue()).toEqual(['B', 'D']);
    await room.tasks.pauses.resume('resource:a.ts');
    expect(await room.queue()).toEqual(['B', 'C', 'D']);
    expect(await room.client.exists(room.keys.pausedTasks())).toBe(0);
  });

  test('are also those that become ready meanwhile, and those that wait for a running one to end', async () => {
    await room.add(on('A', 'a.ts'), on('B', 'a.ts'), { task_id: 'C', depends_on: ['A'] }, 'D');
    await claim('ann', 'A');
    await claim('bob', 'B');
    await room.tasks.pauses.pause('all', WHY);
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 0, in_progress: 1, blocked: 3 });
    await room.tasks.work.complete({ task: 'A', agent: 'ann' });
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 0, completed: 1, blocked: 3 });
    await room.add('NEW');
    expect(await room.status('NEW')).toBe('blocked');
    await room.tasks.cancelOne('D', 'unwanted', 'ops');
    await room.tasks.pauses.resume('all');
    expect(await room.queue()).toEqual(['B', 'C', 'NEW']);
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 3, blocked: 0, failed: 1 });
  });

  test('are not those that a plain client has already taken', async () => {
    await room.add('A', 'B');
    await room.plain.rpop(room.keys.taskQueue());
    await room.tasks.pauses.pause('all', WHY);
    expect(await statuses('A', 'B')).toEqual(['pending', 'blocked']);
    await reconciler.once();
    expect(await room.status('A')).toBe('assigned');
    await room.tasks.pauses.resume('all');
    expect(await room.queue()).toEqual(['B']);
  });

  test('follow a pause that nobody lived to carry out, and one for a quota', async () => {
    await room.add({ task_id: 'A', agent_type: 'codex' }, { task_id: 'B', agent_type: 'codex' }, 'C');
    await room.client.hset(room.keys.pauses(), 'codex', JSON.stringify(WHY));
    await reconciler.once();
    expect(await statuses('A', 'B', 'C')).toEqual(['blocked', 'blocked', 'pending']);
    await room.client.hdel(room.keys.pauses(), 'codex');
    await reconciler.once();
    expect(await statuses('A', 'B', 'C')).toEqual(['pending', 'pending', 'pending']);
    await room.tasks.work.claim({ agent: 'cod', type: 'codex' });
    await room.tasks.work.fail({ task: 'A', agent: 'cod' }, { class: 'quota', error: 'limit', pauseType: 'codex' });
    await reconciler.once();
    expect(await statuses('A', 'B', 'C')).toEqual(['blocked', 'blocked', 'pending']);
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 1, blocked: 2 });
  });

  test('follow in slices, however many there are', { timeout: 120_000 }, async () => {
    const ids = Array.from({ length: 3_000 }, (_, at) => `T-${String(at).padStart(4, '0')}`);
    await room.add(...ids);
    await room.tasks.pauses.pause('all', WHY);
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 0, blocked: 3_000 });
    await room.tasks.pauses.resume('all');
    expect((await room.queue()).slice(0, 1_000)).toEqual(ids.slice(0, 1_000));
    expect(await room.tasks.views.progress()).toMatchObject({ pending: 3_000, blocked: 0 });
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
