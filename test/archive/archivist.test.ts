import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { archiveJob } from '../../src/archive/archive-job.ts';
import { Archivist } from '../../src/archive/archivist.ts';
import { pruneOnce } from '../../src/archive/pruning.ts';
import { Renewal } from '../../src/archive/renewal.ts';
import { TaskArchive } from '../../src/archive/task-archive.ts';
import { systemClock } from '../../src/clock.ts';
import { Jobs } from '../../src/jobs/jobs.ts';
import { silentLog } from '../../src/log.ts';
import type { Store } from '../../src/store/database.ts';
import { aTaskRoom, type TaskRoom } from '../coordinator/tasks/room.ts';
import { aDirectory, aStore } from '../store/builders.ts';
import { onBothStores } from '../support/stores.ts';

const DAY = 86_400_000;

let room: TaskRoom;
beforeAll(async () => {
  room = await aTaskRoom();
});
afterEach(async () => {
  await room.client.flushall();
});

function anArchivist(store: Store, { days = 0, afterDays = 1 } = {}) {
  const tasks = room.tasks.store;
  const archive = new TaskArchive({ store, project: tasks.project });
  const clock = { ...systemClock, now: () => systemClock.now() + days * DAY };
  return { archive, archivist: new Archivist({ tasks, archive, clock, afterDays: () => afterDays }) };
}

/** As Redis forgets a task when its time is over. */
async function expire(task: string): Promise<void> {
  const { client, keys } = room;
  const all = [keys.taskState(task), keys.taskData(task), keys.taskConfig(task), keys.taskMetadata(task)];
  await Promise.all([...all, keys.taskExecution(task), keys.taskRisk(task)].map((key) => client.pexpire(key, 0)));
}

const NOTHING = { archived: 0, unlisted: 0, lost: 0 };

await onBothStores((open) => {
  test('what ended long enough ago is archived with all that is known of it, and once', async () => {
    const store = await open();
    await room.add({ task_id: 'A', title: 'Paint', tags: ['red'], phase: 'completed' }, 'B');
    await room.client.set(room.keys.taskPreview('A'), '{"changes":[]}');
    await room.client.hset(room.keys.approvalVotes('A'), 'rob', '{"action":"approve"}');
    await room.client.sadd(room.keys.approvalIndex('A'), 'A.1');
    await room.client.hset(room.keys.approvalRequest('A.1'), 'reviewer_id', 'rob', 'status', 'APPROVED');

    expect(await anArchivist(store).archivist.archiveOnce()).toEqual(NOTHING);
    const { archivist, archive } = anArchivist(store, { days: 2 });
    expect(await archivist.archiveOnce()).toEqual({ ...NOTHING, archived: 1 });
    expect(await archivist.archiveOnce()).toEqual(NOTHING);

    const { document, ...row } = await archive.get('A');
    expect(row).toMatchObject({ task_id: 'A', state: 'COMPLETED', title: 'Paint', author: 'api' });
    expect(document).toMatchObject({
      data: { task_id: 'A', tags: ['red'] },
      config: { version: '1' },
      execution: { result: 'success' },
      preview: { changes: [] },
      requests: [{ approval_id: 'A.1', reviewer_id: 'rob', status: 'APPROVED' }],
      votes: { rob: { action: 'approve' } },
    });
  });

  test('nothing goes from Redis that it has, and what it has forgotten leaves the indexes but not the archive', async () => {
    const store = await open();
    const { client, keys } = room;
    await room.add({ task_id: 'A', tags: ['red'], files_to_modify: ['a.ts'], phase: 'cancelled' });
    const { archivist, archive } = anArchivist(store, { days: 2 });
    await archivist.archiveOnce();
    expect(await client.zscore(keys.tasksByState('CANCELLED'), 'A')).not.toBeNull();
    expect(await room.tasks.views.detail('A')).toMatchObject({ state: 'CANCELLED' });

    await expire('A');
    expect(await archivist.archiveOnce()).toEqual({ ...NOTHING, unlisted: 1 });
    const indexes = [keys.tasksByState('CANCELLED'), keys.tasksByAuthor('api'), keys.tasksByTag('red')];
    expect(await Promise.all(indexes.map((index) => client.zcard(index)))).toEqual([0, 0, 0]);
    expect(await client.keys('ade:task:index:resource:*')).toEqual([]);
    expect(await archive.get('A')).toMatchObject({ state: 'CANCELLED' });
    expect(await archivist.archiveOnce()).toEqual(NOTHING);
  });

  test('a turn that breaks off between the store and Redis leaves nothing to repair', async () => {
    const store = await open();
    const { client, keys } = room;
    const { archivist, archive } = anArchivist(store, { days: 2 });
    await room.add({ task_id: 'A', tags: ['red'], phase: 'completed' });
    await archivist.archiveOnce();
    await expire('A');
    await room.add({ task_id: 'B', phase: 'completed' });
    // The store takes B; then Redis cannot take A out of its indexes, for one of them is none.
    await client.set(keys.tasksByTag('red'), 'foreign');
    await expect(archivist.archiveOnce()).rejects.toThrow('WRONGTYPE');
    expect((await archive.list({ limit: 10 })).items.map(({ task_id }) => task_id)).toEqual(['B', 'A']);

    await client.del(keys.tasksByTag('red'));
    expect(await archivist.archiveOnce()).toEqual({ ...NOTHING, unlisted: 1 });
    expect(await client.zrange(keys.tasksByState('COMPLETED'), '0', '-1')).toEqual(['B']);
    // The same row again, as a second daemon might write it at the same time.
    const rows = await store.db.selectFrom('archived_tasks').selectAll().execute();
    await archive.save(rows.map(({ position: _position, ...row }) => row));
    expect((await archive.list({ limit: 10 })).items).toHaveLength(2);
  });

  test('a task that came back and ended anew is archived as it ended last', async () => {
    const store = await open();
    await room.add({ task_id: 'A', phase: 'failed' });
    const { archivist, archive } = anArchivist(store, { days: 2 });
    await archivist.archiveOnce();
    await room.tasks.reopen('A', 'once more', 'ann');
    expect(await archivist.archiveOnce()).toEqual(NOTHING);
    await room.tasks.judge('A', { to: 'completed' }, 'ann');
    expect(await archivist.archiveOnce()).toEqual({ ...NOTHING, archived: 1 });
    expect((await archive.list({ limit: 10 })).items).toMatchObject([{ task_id: 'A', state: 'COMPLETED' }]);
  });

  test('what Redis is about to forget is not waited with, and what it forgot too soon is told', async () => {
    const store = await open();
    await room.add({ task_id: 'A', phase: 'completed' }, { task_id: 'B', phase: 'completed' });
    const { client, keys } = room;
    const born = Math.floor(systemClock.now() / 1000) - 89 * 86_400;
    await client.zadd(keys.tasksByState('COMPLETED'), born, 'A', born, 'B');
    await client.expire(keys.taskState('A'), 86_400);
    const { archivist } = anArchivist(store, { afterDays: 5 });
    expect(await archivist.archiveOnce()).toEqual({ ...NOTHING, archived: 1 });
    await expire('B');
    expect(await archivist.archiveOnce()).toEqual({ archived: 0, unlisted: 1, lost: 1 });
  });

  test('pages of the archive follow each other, newest first, and can be of one state', async () => {
    const store = await open();
    const ids = Array.from({ length: 5 }, (_, at) => `T${at}`);
    await room.add(...ids.map((task_id) => ({ task_id, phase: 'completed' as const })), {
      task_id: 'X',
      phase: 'cancelled',
    });
    const { archivist, archive } = anArchivist(store, { days: 2 });
    await archivist.archiveOnce();
    const seen: string[] = [];
    for (let cursor: string | undefined, at = 0; at < 10; at++) {
      const page = await archive.list({ limit: 2, cursor });
      seen.push(...page.items.map(({ task_id }) => task_id));
      cursor = page.next;
      if (cursor === undefined) break;
    }
    expect(seen[0]).toBe('X');
    expect(seen.toSorted()).toEqual([...ids, 'X']);
    expect((await archive.list({ limit: 10, state: 'CANCELLED' })).items.map(({ task_id }) => task_id)).toEqual(['X']);
    await expect(archive.get('nobody')).rejects.toThrow(expect.objectContaining({ code: 'ARCHIVED_TASK_UNKNOWN' }));
  });
});

describe('a turn', () => {
  test('is bounded, and the next goes on where it stopped', async () => {
    const store = await openOne();
    await room.add(...Array.from({ length: 450 }, (_, at) => ({ task_id: `T${at}`, phase: 'completed' as const })));
    const { archivist } = anArchivist(store, { days: 2 });
    expect(await archivist.archiveOnce(undefined, 1)).toMatchObject({ archived: 200 });
    expect(archivist.isMidway).toBe(true);
    expect(await archivist.archiveOnce(undefined, 1)).toMatchObject({ archived: 200 });
    expect(await archivist.archiveOnce()).toMatchObject({ archived: 50 });
    expect(archivist.isMidway).toBe(false);
  });

  test('is the job archive, done by one daemon at a time', async () => {
    const store = await openOne();
    await room.add({ task_id: 'A', phase: 'completed' });
    const { archivist, archive } = anArchivist(store, { days: 2 });
    const renewal = new Renewal({ tasks: room.tasks.store, clock: systemClock });
    const pruning = {
      store,
      project: room.tasks.store.project,
      clock: systemClock,
      service: 'test',
      keepDays: () => 0,
    };
    const handlers = { archive: archiveJob({ tasks: room.tasks.store, archivist, renewal, pruning, log: silentLog }) };
    const { connection, keys, scripts, client } = room;
    const jobs = new Jobs({ connection, keys, scripts, clock: systemClock, log: silentLog, handlers });
    await client.set(keys.jobLock('archive'), 'another');
    expect(await jobs.runDueOnce()).toEqual({ ran: 0, failed: 0 });
    await client.del(keys.jobLock('archive'));
    expect(await jobs.runDueOnce()).toEqual({ ran: 1, failed: 0 });
    expect(await archive.get('A')).toMatchObject({ state: 'COMPLETED' });
    expect(await client.zrange(keys.scheduledJobs(), '0', '-1')).toEqual(['{"type":"archive","id":"archive"}']);
  });
});

await onBothStores((open) => {
  test('what was archived longer ago than is set is deleted, with an audit row that names it; by default nothing is', async () => {
    const store = await open();
    await room.add(...['A', 'B'].map((task_id) => ({ task_id, phase: 'completed' as const })));
    const { archivist, archive } = anArchivist(store, { days: 2 });
    await archivist.archiveOnce();
    await store.db
      .updateTable('archived_tasks')
      .set({ archived_at: '2020-01-01T00:00:00.000Z' })
      .where('task_id', '=', 'A')
      .execute();
    const prune = (days?: number) =>
      pruneOnce({
        store,
        project: room.tasks.store.project,
        clock: systemClock,
        service: 'test',
        keepDays: () => days,
      });
    expect([await prune(), await prune(36_500), await prune(91), await prune(91)]).toEqual([0, 0, 1, 0]);
    expect((await archive.list({ limit: 10 })).items).toMatchObject([{ task_id: 'B' }]);
    const rows = await store.db.selectFrom('audit_intake').select('body').execute();
    expect(rows.map(({ body }) => JSON.parse(body) as object)).toMatchObject([
      { action: 'archive.prune', user: 'system', detail: { tasks: ['A'] } },
    ]);
  });
});

test('projects on one Redis have archives of their own', async () => {
  const store = await openOne();
  await room.add({ task_id: 'A', phase: 'completed' });
  const { client, keys } = room;
  // As the daemon of another project leaves it.
  await client.set(keys.taskState('apollo.B'), 'COMPLETED');
  await client.zadd(keys.tasksByState('COMPLETED'), 1, 'apollo.B');
  const { archivist, archive } = anArchivist(store, { days: 2 });
  expect(await archivist.archiveOnce()).toEqual({ ...NOTHING, archived: 1 });
  expect(await new TaskArchive({ store, project: 'apollo' }).list({ limit: 10 })).toEqual({ items: [] });
  expect((await archive.list({ limit: 10 })).items).toHaveLength(1);
});

const openOne = async (): Promise<Store> => aStore({ url: `sqlite:${await aDirectory()}/test.db` });
