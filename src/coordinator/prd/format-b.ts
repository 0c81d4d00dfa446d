import { randomUUID } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { isId } from '../../redis/ids.ts';
import type { Outcome } from '../tasks/task-sink.ts';
import { type Cells, isEmpty, textOf } from './cells.ts';
import { columnsOf, type Dialect, insertKnown, selectKnown, updateKnown } from './dialect.ts';
import { knownWords, OPEN, readPriorityWord, readStatus, readTime, writeStatus, writeTime } from './mapping.ts';
import type { Correction, PrdRow, RefusedRow } from './prd-db.ts';
import { quoted, RowReader } from './row-reader.ts';

const COLUMNS = [
  'id',
  'display_id',
  'title',
  'description',
  'status',
  'priority',
  'parent_id',
  'assigned_agent',
  'created_at',
  'estimated_duration',
  'epic_name',
  'category',
  'tech_stack',
  'files_to_modify',
  'files_to_read',
  'resources',
  'agent_type',
  'requires',
  'required_capabilities',
  'timeout_seconds',
  'rollback_strategy',
  'if_dependency_fails',
];

/**
 * Format B: `id` is a UUID, people say `display_id`, and so do we: it is the id of the task. Dependencies and criteria
 * refer to it; agents are rows of their own that a task refers to by their UUID.
 */
export function formatB(file: Database): Dialect {
  return {
    format: 'B',
    priorityOrder: 'desc',
    rows: () => readRows(file),
    wordOf: (taskId) => {
      const row = findTask(file, taskId);
      return row && textOf(row.status);
    },
    setStatus: (change) => setStatus(file, change),
    log: (outcome) => log(file, outcome),
  };
}

interface Surroundings {
  readonly dependencies: ReadonlyMap<string, readonly Cells[]>;
  readonly criteria: ReadonlyMap<string, readonly Cells[]>;
  readonly agents: ReadonlyMap<string, string>;
  readonly ids: ReadonlyMap<string, string>;
}

function readRows(file: Database): { rows: PrdRow[]; refused: RefusedRow[] } {
  const cells = selectKnown(file, 'tasks', COLUMNS, 'order by rowid');
  const edges = selectKnown(file, 'task_dependencies', ['task_display_id', 'depends_on_display_id', 'dependency_type']);
  const criteria = selectKnown(file, 'acceptance_criteria', ['task_display_id', 'criterion', 'completed']);
  const agents = selectKnown(file, 'agents', ['id', 'name']);
  const around: Surroundings = {
    dependencies: Map.groupBy(edges, ({ task_display_id }) => textOf(task_display_id)),
    criteria: Map.groupBy(criteria, ({ task_display_id }) => textOf(task_display_id)),
    agents: new Map(agents.map(({ id, name }) => [textOf(id), textOf(name)])),
    ids: new Map(cells.map((row) => [textOf(row.id), idOf(row)])),
  };
  const rows: PrdRow[] = [];
  const refused: RefusedRow[] = [];
  for (const row of cells) {
    if (isId('task', idOf(row))) rows.push(rowOf(row, around));
    else refused.push({ row: quoted(idOf(row)), problem: 'its id cannot be the id of a task' });
  }
  return { rows, refused };
}

const idOf = (row: Cells): string => textOf(isEmpty(row.display_id) ? row.id : row.display_id);

function rowOf(cells: Cells, { dependencies, criteria, agents, ids }: Surroundings): PrdRow {
  const row = new RowReader(cells);
  const word = row.text('status');
  const says = () => `its status is ${quoted(word)}, not one of ${knownWords('B')}`;
  const status = row.known('status', readStatus('B', word), OPEN, says);
  const priority = row.text('priority');
  const number = textOf(cells.display_id);
  const agent = row.text('assigned_agent');
  const parent = row.text('parent_id');
  const id = idOf(cells);
  return {
    task: {
      // Checked by the caller.
      task_id: id as PrdRow['task']['task_id'],
      title: row.text('title') || id,
      description: row.text('description'),
      category: row.text('category'),
      epic: row.text('epic_name'),
      priority: row.known('priority', readPriorityWord(priority), 0, () => {
        return `its priority is ${quoted(priority)}, not one of low, medium, high, critical`;
      }),
      acceptance_criteria: (criteria.get(number) ?? []).map(criterion).join('\n'),
      depends_on: dependsOn(row, dependencies.get(number) ?? []),
      ...row.extras(),
      estimated_minutes: row.amount('estimated_minutes', ['estimated_duration']),
      parent_task_id: parent === '' ? undefined : (ids.get(parent) ?? parent),
      origin: 'prd',
      created_at: readTime(row.text('created_at')),
    },
    ...status,
    word,
    agent: agent === '' ? undefined : (agents.get(agent) ?? agent),
    problems: row.problems,
  };
}

const criterion = ({ criterion: text, completed }: Cells) =>
  `- [${isEmpty(completed) || textOf(completed) === '0' ? ' ' : 'x'}] ${textOf(text)}`;

function dependsOn(row: RowReader, edges: readonly Cells[]): string[] {
  const odd = edges.find(({ dependency_type }) => !isEmpty(dependency_type) && textOf(dependency_type) !== 'blocks');
  if (odd) row.problem('depends_on', `it has a dependency of unknown type ${quoted(odd.dependency_type)}`);
  return [...new Set(edges.map(({ depends_on_display_id }) => textOf(depends_on_display_id)))];
}

/** By number first: that is its id to us. A row that has none goes by its UUID. */
function findTask(file: Database, taskId: string): Cells | undefined {
  const hasNumber = columnsOf(file, 'tasks').has('display_id');
  const find = (where: string) =>
    file.prepare<[string], Cells>(`select id, status from tasks where ${where}`).get(taskId);
  return hasNumber ? (find('display_id = ?') ?? find('id = ? and display_id is null')) : find('id = ?');
}

function setStatus(file: Database, { task_id, phase, agent, at }: Correction): void {
  const task = findTask(file, task_id);
  if (!task) return;
  const time = writeTime('B', at);
  const id = textOf(task.id);
  const agentRow = agent === undefined ? undefined : agentId(file, agent, time);
  const values = {
    status: writeStatus('B', phase),
    assigned_agent: phase === 'open' ? null : agentRow,
    updated_at: time,
    completed_at: phase === 'completed' ? time : null,
  };
  updateKnown(file, 'tasks', values, { column: 'id', is: id });
  keepAgents(file, id, phase === 'running' ? agentRow : undefined, time);
}

/** An agent is working on its current task and idle without one; a task has at most one agent at it. */
function keepAgents(file: Database, task: string, agent: string | undefined, time: string): void {
  if (!columnsOf(file, 'agents').has('current_task_id')) return;
  file
    .prepare(`update agents set current_task_id = null, status = 'idle', last_active = ? where current_task_id = ?`)
    .run(time, task);
  if (agent === undefined) return;
  const working = { status: 'working', current_task_id: task, last_active: time };
  updateKnown(file, 'agents', working, { column: 'id', is: agent });
}

/** The UUID of an agent, whose row is made if there is none: a task may only name an agent that exists. */
function agentId(file: Database, name: string, time: string): string | undefined {
  if (columnsOf(file, 'agents').size === 0) return undefined;
  const found = file.prepare<[string, string], Cells>('select id from agents where name = ? or id = ?').get(name, name);
  if (found) return textOf(found.id);
  const id = randomUUID();
  const next = columnsOf(file, 'agents').has('display_id')
    ? file.prepare<[], number>('select coalesce(max(display_id), 0) + 1 from agents').pluck().get()
    : undefined;
  insertKnown(file, 'agents', {
    id,
    name,
    status: 'idle',
    created_at: time,
    last_active: time,
    display_id: next,
  });
  return id;
}

function log(file: Database, { event, task_id, agent_id, at, payload }: Outcome): boolean {
  const columns = columnsOf(file, 'task_logs');
  const task = columns.size > 0 ? findTask(file, task_id) : undefined;
  if (!task) return false;
  const time = writeTime('B', at);
  insertKnown(file, 'task_logs', {
    id: columns.get('id')?.includes('int') ? undefined : randomUUID(),
    task_id: textOf(task.id),
    agent_id: agent_id === undefined ? null : (agentId(file, agent_id, time) ?? null),
    action: event,
    details: JSON.stringify(payload),
    created_at: time,
  });
  return true;
}
