import { writeFile } from 'node:fs/promises';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { openPrdDb } from '../../../src/coordinator/prd/open-prd-db.ts';
import type { PrdRow } from '../../../src/coordinator/prd/prd-db.ts';
import { ReeveError } from '../../../src/errors.ts';
import { aPrdFile, FORMAT_A, FORMAT_B, opened, rowA, rowB, uuid } from '../../support/prd-db.ts';

async function rowsOf(path: string): Promise<PrdRow[]> {
  return [...(await (await opened(path)).readAll()).rows];
}

async function onlyRow(row: Parameters<typeof rowA>[1], schema = FORMAT_A): Promise<PrdRow> {
  const { path } = await aPrdFile(schema, rowA('TASK-001', row));
  return (await rowsOf(path))[0]!;
}

async function refusal(path: string) {
  const error = await openPrdDb(path, systemClock).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ReeveError);
  const { code, message } = error as ReeveError;
  return { code, message };
}

describe('which format it is', () => {
  test('the columns of its tasks tell', async () => {
    expect((await opened((await aPrdFile(FORMAT_A)).path)).format).toBe('A');
    expect((await opened((await aPrdFile(FORMAT_B)).path)).format).toBe('B');
  });

  test('a file with both sets of columns names its ids, so it is A, and its links by number are read', async () => {
    const both = FORMAT_A.replace('title text', 'title text, display_id integer');
    const { path, file } = await aPrdFile(both, rowA('A-1', { display_id: 1 }), rowA('A-2', { display_id: 2 }));
    file.exec('create table task_dependencies (task_display_id integer, depends_on_display_id integer)');
    file.exec('insert into task_dependencies values (2, 1), (1, 9)');
    expect((await rowsOf(path)).map(({ task }) => task.depends_on)).toEqual([['#9'], ['A-1']]);
  });

  test('neither: it is refused with what was found, and nothing is written', async () => {
    const { path } = await aPrdFile('create table tasks (name text, done integer)');
    expect(await refusal(path)).toEqual({
      code: 'PRD_FOREIGN',
      message: expect.stringContaining('its tasks have the columns name, done'),
    });
    const tables = new Database(path, { readonly: true }).prepare('select name from sqlite_schema').pluck().all();
    expect(tables).toEqual(['tasks']);
  });

  test('an empty file, a file that is no database, and none', async () => {
    const { path, file } = await aPrdFile(FORMAT_A);
    file.close();
    await writeFile(path, '');
    expect(await refusal(path)).toMatchObject({
      code: 'PRD_FOREIGN',
      message: expect.stringContaining('no table tasks'),
    });
    await writeFile(path, 'Dear diary, '.repeat(100));
    expect(await refusal(path)).toMatchObject({
      code: 'PRD_UNREADABLE',
      message: expect.stringContaining('not an SQLite database'),
    });
    expect(await refusal(`${path}.gone`)).toMatchObject({
      code: 'PRD_UNREADABLE',
      message: expect.stringContaining('no such file'),
    });
  });
});

describe('format A', () => {
  test('a row is read in full', async () => {
    const row = await onlyRow({
      title: 'Store feedback',
      description: 'POST /feedback',
      category: 'Backend',
      epic: 'Feedback',
      priority: 2,
      estimated_hours: 0.25,
      depends_on: '["TASK-019", "TASK-020"]',
      tech_stack: 'TypeScript, zod',
      files_to_modify: '["src/feedback/", {"path": "docs/api.md", "read_only": true}]',
      acceptance_criteria: '- [ ] works',
      assigned_agent: 'agent-007',
      created_at: '2025-10-02 14:30:00',
    });
    expect(row).toEqual({
      task: {
        task_id: 'TASK-001',
        title: 'Store feedback',
        description: 'POST /feedback',
        category: 'Backend',
        epic: 'Feedback',
        priority: 2,
        tech_stack: ['TypeScript', 'zod'],
        acceptance_criteria: '- [ ] works',
        files_to_modify: ['src/feedback/'],
        resources: [
          { type: 'file', id: 'src/feedback/', mode: 'exclusive' },
          { type: 'file', id: 'docs/api.md', mode: 'shared' },
        ],
        depends_on: ['TASK-019', 'TASK-020'],
        if_dependency_fails: 'block',
        requires: [],
        estimated_minutes: 15,
        rollback_strategy: 'none',
        origin: 'prd',
        created_at: '2025-10-02T14:30:00.000Z',
      },
      phase: 'open',
      hold: 'none',
      word: 'pending',
      agent: 'agent-007',
      problems: [],
      sums: expect.stringContaining('title='),
    });
  });

  test('rows of every status are loaded, the finished ones included', async () => {
    const words = ['pending', 'blocked', 'in_progress', 'assigned', 'completed', 'failed', 'cancelled', 'In Progress'];
    const { path } = await aPrdFile(FORMAT_A, ...words.map((status, at) => rowA(`T-${at}`, { status })));
    expect((await rowsOf(path)).map(({ phase }) => phase)).toEqual([
      'open',
      'open',
      'running',
      'running',
      'completed',
      'failed',
      'cancelled',
      'running',
    ]);
  });

  test('few columns are enough, others may be there, and wide ones are not read', async () => {
    const { path, file } = await aPrdFile('create table tasks (title text, task_id text, embedding blob, mood text)');
    file.prepare('insert into tasks values (?, ?, ?, ?)').run('Small', 'T-1', Buffer.alloc(1000), 'fine');
    expect(await rowsOf(path)).toMatchObject([{ task: { task_id: 'T-1', priority: 5 }, phase: 'open', problems: [] }]);
  });

  test.each([
    [null, []],
    ['', []],
    ['[]', []],
    ['["TASK-2", "TASK-2", " TASK-3 "]', ['TASK-2', 'TASK-3']],
  ])('depends_on %j means %j', async (depends_on, ids) => {
    const row = await onlyRow({ depends_on });
    expect([row.task.depends_on, row.problems]).toEqual([ids, []]);
  });

  test.each(['[oops', '5', '{"a": 1}', '[["TASK-2"]]', '"TASK-2"', 'TASK-2', '[null]', '[7]', '[""]', '""'])(
    'depends_on %j is a problem, never "no dependencies"',
    async (depends_on) => {
      const { problems } = await onlyRow({ depends_on });
      expect(problems).toMatchObject([
        { field: 'depends_on', says: expect.stringMatching(/no JSON list of task ids/) },
      ]);
    },
  );

  test('dependencies in a table of their own count, too', async () => {
    const { path, file } = await aPrdFile(FORMAT_A, rowA('T-1'), rowA('T-2'), rowA('T-3', { depends_on: '["T-1"]' }));
    file.exec(`create table task_dependencies (task_id text, depends_on_task_id text);
      insert into task_dependencies values ('T-3', 'T-2'), ('T-3', 'T-1')`);
    expect((await rowsOf(path))[2]!.task.depends_on).toEqual(['T-1', 'T-2']);
  });

  test('a table of dependencies that nobody can read stops the loading, rather than starting tasks early', async () => {
    const { path, file } = await aPrdFile(FORMAT_A, rowA('T-1'));
    file.exec('create table task_dependencies (von text, nach text)');
    await expect((await opened(path)).readAll()).rejects.toMatchObject({
      code: 'PRD_UNREADABLE',
      message: expect.stringContaining('von, nach'),
    });
  });

  test.each([
    [{ status: 'compelted' }, 'status', /"compelted", not one of pending/],
    [{ priority: 'urgent' }, 'priority', /"urgent", no number/],
    [{ files_to_modify: '["a", 7]' }, 'files_to_modify', /no list of paths/],
    [{ files_to_modify: '{"a": 1}' }, 'files_to_modify', /no list of paths/],
    [{ files_to_modify: '["a\\u0000b"]' }, 'resources', /a name that no lock can have/],
    [{ tech_stack: '[1]' }, 'tech_stack', /no list of texts/],
  ])('%j is a problem with the %s, in words', async (row, field, says) => {
    const { problems } = await onlyRow(row);
    expect(problems).toMatchObject([{ field, says: expect.stringMatching(says) }]);
  });

  test('odd but clear values are taken as they are', async () => {
    const odd = await onlyRow({
      category: null,
      priority: -1.5,
      title: '$(rm -rf) \x1b[31m<b>',
      description: 'x'.repeat(2e6),
    });
    expect(odd.problems).toEqual([]);
    expect(odd.task).toMatchObject({ category: '', priority: -1.5, title: '$(rm -rf) \x1b[31m<b>' });
    expect(odd.task.description).toHaveLength(2e6);
    expect((await onlyRow({ priority: null })).task.priority).toBe(5);
  });

  test.each(['has space', 'a:b', 'a\nb', '*', 'fire🔥', 'queue', 'x'.repeat(1e6), '', null])(
    'the id %j cannot be one: the row is named, the others load',
    async (task_id) => {
      const { path } = await aPrdFile(FORMAT_A, { ...rowA('x'), task_id }, rowA('T-1'));
      const { rows, refused } = await (await opened(path)).readAll();
      expect(rows.map(({ task }) => task.task_id)).toEqual(['T-1']);
      expect(refused).toEqual([{ row: expect.any(String), problem: expect.stringContaining('cannot be the id') }]);
      expect(refused[0]!.row.length).toBeLessThan(100);
    },
  );

  test('of rows with one id the first is kept, under quarantine', async () => {
    const loose = FORMAT_A.replace('task_id text unique', 'task_id text');
    const { path } = await aPrdFile(loose, rowA('T-1', { title: 'First' }), rowA('T-2'), rowA('T-1'), rowA('T-1'));
    expect(await rowsOf(path)).toMatchObject([
      { task: { title: 'First' }, problems: [{ field: 'task_id', says: 'more than one row has the id T-1' }] },
      { task: { task_id: 'T-2' }, problems: [] },
    ]);
  });

  test('further columns say what the queue can use', async () => {
    const more = `resources text, files_to_read text, agent_type text, requires text, timeout_seconds integer,
      rollback_strategy text, if_dependency_fails text, parent_task_id text`;
    const row = await onlyRow(
      {
        resources: '["database:prod:main", {"type": "service", "id": "api", "read_only": true}]',
        files_to_read: 'README.md, docs/',
        agent_type: 'dba',
        requires: 'docker',
        timeout_seconds: 90,
        rollback_strategy: 'automatic',
        if_dependency_fails: 'skip',
        parent_task_id: 'TASK-000',
      },
      FORMAT_A.replace('title text', `title text, ${more}`),
    );
    expect(row.problems).toEqual([]);
    expect(row.task).toMatchObject({
      resources: [
        { type: 'file', id: 'README.md', mode: 'shared' },
        { type: 'file', id: 'docs/', mode: 'shared' },
        { type: 'database', id: 'prod:main', mode: 'exclusive' },
        { type: 'service', id: 'api', mode: 'shared' },
      ],
      agent_type: 'dba',
      requires: ['docker'],
      timeout_seconds: 90,
      rollback_strategy: 'automatic',
      if_dependency_fails: 'skip',
      parent_task_id: 'TASK-000',
    });
  });
});

describe('format B', () => {
  test('tasks go by their number; links, criteria, parents and agents are followed', async () => {
    const { path, insert } = await aPrdFile(FORMAT_B);
    insert('agents', { id: uuid(900), name: 'A5', status: 'idle', created_at: 'x', last_active: 'x' });
    insert(
      'tasks',
      rowB(1),
      rowB(2, { parent_id: uuid(1), priority: 'critical', estimated_duration: 30, epic_name: 'E' }),
    );
    insert('tasks', rowB(3, { assigned_agent: uuid(900), status: 'in_progress', description: 'words' }));
    insert('task_dependencies', { task_display_id: 2, depends_on_display_id: 1, created_at: 'x' });
    insert(
      'acceptance_criteria',
      { task_display_id: 2, criterion: 'It works', created_at: 'x' },
      { task_display_id: 2, criterion: 'It is quick', completed: 1, created_at: 'x' },
    );
    const [, second, third] = await rowsOf(path);
    expect(second!.task).toMatchObject({
      task_id: '2',
      parent_task_id: '1',
      depends_on: ['1'],
      priority: 4,
      estimated_minutes: 30,
      epic: 'E',
      acceptance_criteria: '- [ ] It works\n- [x] It is quick',
      created_at: '2025-10-13T14:46:18.123Z',
    });
    expect(third).toMatchObject({ phase: 'running', agent: 'A5', word: 'in_progress' });
  });

  test('a person blocks or reviews; that is a hold, not a dependency', async () => {
    const words = ['pending', 'in_progress', 'blocked', 'review', 'completed', 'cancelled'];
    const { path } = await aPrdFile(FORMAT_B, ...words.map((status, at) => rowB(at + 1, { status })));
    expect((await rowsOf(path)).map(({ phase, hold }) => `${phase}${hold === 'word' ? ', held' : ''}`)).toEqual([
      'open',
      'running',
      'open, held',
      'open, held',
      'completed',
      'cancelled',
    ]);
  });

  test('words it does not have are problems, as are links of a kind nobody knows', async () => {
    const { path, insert } = await aPrdFile(
      FORMAT_B,
      rowB(1, { status: 'failed' }),
      rowB(2, { priority: 'urgent' }),
      rowB(3),
    );
    insert('task_dependencies', {
      task_display_id: 3,
      depends_on_display_id: 1,
      dependency_type: 'likes',
      created_at: 'x',
    });
    expect((await rowsOf(path)).map(({ problems }) => problems.map(({ field }) => field))).toEqual([
      ['status'],
      ['priority'],
      ['depends_on'],
    ]);
  });

  test('tables and columns that an older or newer tool left out or added do not matter', async () => {
    const old =
      'create table tasks (id text primary key, display_id integer, title text, status text, priority text, x text)';
    const { path } = await aPrdFile(old, {
      id: uuid(1),
      display_id: null,
      title: 'T',
      status: 'pending',
      priority: 'low',
    });
    expect((await rowsOf(path)).map(({ task }) => task.task_id)).toEqual([uuid(1)]);
  });

  test.each([
    [
      'A',
      `${FORMAT_A.replaceAll('task_dependencies', 'other')}create table task_dependencies (task text, needs text);`,
    ],
    ['B', FORMAT_B.replaceAll('depends_on_display_id', 'needs_display_id')],
  ])(
    'in format %s dependencies that cannot be read stop the reading: without them all would begin',
    async (_, schema) => {
      const { path } = await aPrdFile(schema);
      await expect(rowsOf(path)).rejects.toThrow('the columns of its task_dependencies are not known');
    },
  );

  test('urgent is the higher number, whatever the dependencies say', async () => {
    const { path } = await aPrdFile(FORMAT_B);
    expect((await (await opened(path)).readAll()).priorityOrder).toBe('desc');
    expect((await (await opened((await aPrdFile(FORMAT_A)).path)).readAll()).priorityOrder).toBeUndefined();
  });
});
