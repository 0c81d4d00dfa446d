import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PrdDb, RowMemory } from '../../../src/coordinator/prd/prd-db.ts';
import type { Station } from '../../../src/coordinator/tasks/station.ts';
import type { Outcome } from '../../../src/coordinator/tasks/task-sink.ts';
import { runChild, sourceUrl } from '../../support/child.ts';
import { aPrdFile, FORMAT_A, FORMAT_B, opened, rowA, rowB, type TestPrdFile, uuid } from '../../support/prd-db.ts';

const AT = '2026-03-18T15:30:00.123456Z';
let nextId = 1;
const outcome = (task_id: string, event: string, station?: Station, more: Partial<Outcome> = {}): Outcome => ({
  id: `1710000000000-${nextId++}`,
  event,
  task_id,
  agent_id: 'agent-001',
  at: AT,
  station,
  payload: { notes: 'fine' },
  ...more,
});

/** Remembers every row as it is, as the first reading does. */
async function agreed(path: string): Promise<PrdDb> {
  const db = await opened(path);
  const { rows } = await db.readAll();
  const memories = rows.map(({ task, word, agent, phase, hold }): [string, RowMemory] => [
    task.task_id,
    { word, agent, phase, isHeld: hold === 'word', sums: '', problems: '' },
  ]);
  await db.remember({ rows: new Map(memories), forgotten: [], corrections: [] });
  return db;
}

const logOf = ({ file }: TestPrdFile) => file.prepare('select * from redis_coordination order by id').all();

describe('format A', () => {
  test('status, agent and time go back in its own words and form, and nothing else is touched', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1', { description: 'mine', depends_on: '[]' }));
    const db = await agreed(prd.path);
    const before = prd.row('T-1');
    expect(await db.record([outcome('T-1', 'task_started', 'working')])).toMatchObject({ logged: 1, written: 1 });
    expect(prd.row('T-1')).toEqual({
      ...before,
      status: 'in_progress',
      assigned_agent: 'agent-001',
      updated_at: '2026-03-18 15:30:00',
    });
  });

  test.each([
    ['ready', 'pending', null],
    ['waiting', 'pending', null],
    ['review', 'pending', null],
    ['working', 'in_progress', 'agent-001'],
    ['done', 'completed', 'agent-001'],
    ['failed', 'failed', 'agent-001'],
    ['cancelled', 'failed', 'agent-001'],
    ['rejected', 'failed', 'agent-001'],
  ] as const)('a task that is %s is written as %s', async (station, status, assigned_agent) => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1', { status: 'in_progress', assigned_agent: 'agent-001' }));
    const db = await agreed(prd.path);
    await db.record([outcome('T-1', 'task_moved', station)]);
    expect(prd.row('T-1')).toMatchObject({ status, assigned_agent });
  });

  test('the log table is made if it is missing; each event is one row', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const db = await agreed(prd.path);
    await db.record([outcome('T-1', 'task_started', 'working'), outcome('T-1', 'task_completed', 'done')]);
    expect(logOf(prd)).toEqual([
      {
        id: 1,
        event_type: 'task_started',
        task_id: 'T-1',
        agent_id: 'agent-001',
        payload: '{"notes":"fine"}',
        created_at: '2026-03-18 15:30:00',
      },
      expect.objectContaining({ event_type: 'task_completed' }),
    ]);
    expect(prd.row('T-1')).toMatchObject({ status: 'completed' });
  });

  test('a log table with other columns gets what it has room for', async () => {
    const prd = await aPrdFile(
      `${FORMAT_A} create table redis_coordination (event_type text, payload text);`,
      rowA('T-1'),
    );
    await (await agreed(prd.path)).record([outcome('T-1', 'task_started', 'working')]);
    expect(prd.file.prepare('select * from redis_coordination').all()).toEqual([
      { event_type: 'task_started', payload: '{"notes":"fine"}' },
    ]);
  });

  test('a log table that takes nothing is not an obstacle: the row goes into one of our own', async () => {
    const view = 'create view redis_coordination as select 1 as id, 2 as event_type;';
    const prd = await aPrdFile(`${FORMAT_A} ${view}`, rowA('T-1'));
    const recorded = await (await agreed(prd.path)).record([outcome('T-1', 'task_started', 'working')]);
    expect(recorded).toMatchObject({ logged: 1, written: 1, refused: [{ row: 'T-1' }] });
    expect(prd.file.prepare('select event_type, task_id from reeve_log').all()).toEqual([
      { event_type: 'task_started', task_id: 'T-1' },
    ]);
  });

  test('a row that the file refuses does not keep the others from it', async () => {
    const strict = FORMAT_A.replace(`status text`, `status text check (status in ('pending', 'completed'))`);
    const prd = await aPrdFile(strict, rowA('T-1'), rowA('T-2'));
    const recorded = await (await agreed(prd.path)).record([
      outcome('T-1', 'task_started', 'working'),
      outcome('T-2', 'task_completed', 'done'),
    ]);
    expect(recorded).toMatchObject({
      logged: 2,
      written: 1,
      refused: [{ row: 'T-1', problem: expect.stringContaining('CHECK') }],
    });
    expect([prd.row('T-1').status, prd.row('T-2').status]).toEqual(['pending', 'completed']);
  });
});

describe('format B', () => {
  test('words, times and agents are those its own tool can read', async () => {
    const prd = await aPrdFile(FORMAT_B, rowB(1));
    const db = await agreed(prd.path);
    await db.record([outcome('1', 'task_started', 'working')]);
    const agent = prd.file.prepare('select * from agents').get() as Record<string, unknown>;
    expect(agent).toMatchObject({ name: 'agent-001', status: 'working', current_task_id: uuid(1), display_id: 1 });
    expect(prd.row('1')).toMatchObject({
      status: 'in_progress',
      assigned_agent: agent.id,
      updated_at: '2026-03-18T15:30:00.123456+00:00',
      completed_at: null,
    });
    await db.record([outcome('1', 'task_completed', 'done')]);
    expect(prd.row('1')).toMatchObject({ status: 'completed', completed_at: '2026-03-18T15:30:00.123456+00:00' });
    expect(prd.file.prepare('select name, status, current_task_id from agents').all()).toEqual([
      { name: 'agent-001', status: 'idle', current_task_id: null },
    ]);
    expect(prd.file.prepare('select task_id, agent_id, action, details from task_logs order by rowid').all()).toEqual([
      { task_id: uuid(1), agent_id: agent.id, action: 'task_started', details: '{"notes":"fine"}' },
      { task_id: uuid(1), agent_id: agent.id, action: 'task_completed', details: '{"notes":"fine"}' },
    ]);
    expect(prd.file.pragma('foreign_key_check')).toEqual([]);
  });

  test('an agent that has a row already is not made again, by name or by id', async () => {
    const prd = await aPrdFile(FORMAT_B, rowB(1), rowB(2));
    prd.insert('agents', { id: uuid(9), name: 'A5', status: 'idle', created_at: 'x', last_active: 'x' });
    const db = await agreed(prd.path);
    await db.record([outcome('1', 'task_started', 'working', { agent_id: 'A5' })]);
    await db.record([outcome('2', 'task_started', 'working', { agent_id: uuid(9) })]);
    expect([prd.row('1').assigned_agent, prd.row('2').assigned_agent]).toEqual([uuid(9), uuid(9)]);
  });

  test.each([
    ['ready', 'pending'],
    ['failed', 'blocked'],
    ['cancelled', 'cancelled'],
    ['rejected', 'cancelled'],
  ] as const)('a task that is %s is written as %s, for it has no word of its own for all', async (station, status) => {
    const prd = await aPrdFile(FORMAT_B, rowB(1, { status: 'in_progress' }));
    await (await agreed(prd.path)).record([outcome('1', 'task_moved', station)]);
    expect(prd.row('1').status).toBe(status);
  });

  test('what happened to a task that is in no row goes into a log of our own', async () => {
    const prd = await aPrdFile(FORMAT_B, rowB(1));
    await (await agreed(prd.path)).record([outcome('from-the-api', 'task_started', 'working')]);
    expect(prd.file.prepare('select task_id from reeve_log').pluck().all()).toEqual(['from-the-api']);
  });
});

describe('whatever happens in between', () => {
  test('an outcome that comes again is not logged again and moves nothing', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const db = await agreed(prd.path);
    const both = [outcome('T-1', 'task_started', 'working'), outcome('T-1', 'task_completed', 'done')];
    await db.record(both);
    expect(await db.record(both)).toEqual({ logged: 0, written: 0, contested: [], refused: [] });
    expect(await db.record([both[0]!])).toMatchObject({ logged: 0, written: 0 });
    expect(logOf(prd)).toHaveLength(2);
    expect(prd.row('T-1').status).toBe('completed');
  });

  test('two daemons with one file log each outcome once', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const [one, other] = [await agreed(prd.path), await opened(prd.path)];
    const outcomes = Array.from({ length: 50 }, () => outcome('T-1', 'task_noted'));
    await Promise.all([one.record(outcomes), other.record(outcomes)]);
    expect(logOf(prd)).toHaveLength(50);
  });

  test('a status that a person has edited is left alone, and the event is logged all the same', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const db = await agreed(prd.path);
    prd.file.exec(`update tasks set status = 'cancelled'`);
    expect(await db.record([outcome('T-1', 'task_completed', 'done')])).toEqual({
      logged: 1,
      written: 0,
      contested: ['T-1'],
      refused: [],
    });
    expect(prd.row('T-1').status).toBe('cancelled');
  });

  test('a file that was never read is logged to, but its statuses wait for the reading', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    expect(await (await opened(prd.path)).record([outcome('T-1', 'x', 'done')])).toMatchObject({
      logged: 1,
      written: 0,
    });
    expect(prd.row('T-1').status).toBe('pending');
  });

  test.each(['delete', 'wal'])('its journal mode stays %s', async (mode) => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    prd.file.pragma(`journal_mode = ${mode}`);
    await (await agreed(prd.path)).record([outcome('T-1', 'x', 'done')]);
    expect(prd.file.pragma('journal_mode', { simple: true })).toBe(mode);
  });

  test('VACUUM and a change of the journal mode while it is open go unnoticed', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2'));
    const db = await agreed(prd.path);
    prd.file.exec('vacuum');
    await db.record([outcome('T-1', 'x', 'done')]);
    prd.file.exec('alter table tasks add column mood text');
    await db.record([outcome('T-2', 'x', 'done')]);
    expect((await db.readAll()).rows.map(({ phase }) => phase)).toEqual(['completed', 'completed']);
  });

  test('only commits of others count as a change', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const db = await agreed(prd.path);
    await db.readAll();
    await db.record([outcome('T-1', 'x', 'done')]);
    expect(await db.hasChanged()).toBe(false);
    prd.file.exec(`update tasks set title = 'Other'`);
    expect(await db.hasChanged()).toBe(true);
    await db.readAll();
    expect(await db.hasChanged()).toBe(false);
  });

  test('a file locked by another is waited for beside the loop, and then said to be locked', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    const db = await agreed(prd.path);
    prd.file.exec('begin exclusive');
    const late = outcome('T-1', 'task_completed', 'done');
    await expect(db.record([late])).rejects.toMatchObject({ code: 'PRD_LOCKED' });
    const waiting = db.record([late]);
    prd.file.exec('commit');
    expect(await waiting).toMatchObject({ logged: 1, written: 1 });
  });

  test('a file that this user may only read can be read, and says why it cannot be written', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    prd.file.close();
    const code = `
      const { openPrdDb } = await import(${JSON.stringify(sourceUrl('coordinator/prd/open-prd-db.ts'))});
      const { systemClock } = await import(${JSON.stringify(sourceUrl('clock.ts'))});
      const { chmodSync } = await import('node:fs');
      const { dirname } = await import('node:path');
      const path = ${JSON.stringify(prd.path)};
      chmodSync(path, 0o444);
      chmodSync(dirname(path), 0o555);
      // The driver may be where nobody may look, so it is loaded before.
      const { default: Sqlite } = await import('better-sqlite3');
      new Sqlite(':memory:').close();
      if (process.geteuid() === 0) process.seteuid(65534);
      const db = await openPrdDb(path, systemClock);
      const read = (await db.readAll()).rows.length;
      const outcome = { id: '1-1', event: 'x', task_id: 'T-1', at: ${JSON.stringify(AT)}, station: 'done', payload: {} };
      const wrote = await db.record([outcome]).catch((error) => error.code);
      console.log(JSON.stringify({ read, wrote }));`;
    await using child = runChild(code);
    onTestFinished(() => chmod(dirname(prd.path), 0o755));
    expect(await child.next()).toEqual({ read: 1, wrote: 'PRD_UNWRITABLE' });
  });

  test('a process killed between commit and acknowledgement repeats nothing', async () => {
    const prd = await aPrdFile(FORMAT_A, rowA('T-1'));
    await agreed(prd.path);
    const outcomes = [outcome('T-1', 'task_started', 'working'), outcome('T-1', 'task_completed', 'done')];
    const code = `
      const { openPrdDb } = await import(${JSON.stringify(sourceUrl('coordinator/prd/open-prd-db.ts'))});
      const { systemClock } = await import(${JSON.stringify(sourceUrl('clock.ts'))});
      const db = await openPrdDb(${JSON.stringify(prd.path)}, systemClock);
      console.log(JSON.stringify(await db.record(${JSON.stringify(outcomes)})));
      await new Promise(() => setInterval(() => {}, 1000));`;
    await using child = runChild(code);
    expect(await child.next()).toMatchObject({ logged: 2 });
    await child.kill('SIGKILL');
    expect(await (await opened(prd.path)).record(outcomes)).toMatchObject({ logged: 0, written: 0 });
    expect(logOf(prd)).toHaveLength(2);
  });
});
