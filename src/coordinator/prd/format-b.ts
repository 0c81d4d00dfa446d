import { randomUUID } from 'node:crypto';
import { isId } from '../../redis/ids.ts';
import type { Outcome } from '../tasks/task-sink.ts';
import { type Cell, type Cells, isEmpty, textOf } from './cells.ts';
import type { Dialect } from './dialect.ts';
import { knownWords, OPEN, readPriorityWord, readStatus, readTime, writeStatus, writeTime } from './mapping.ts';
import type { Correction, PrdRow, RefusedRow } from './prd-db.ts';
import type { RowCache } from './row-cache.ts';
import { quoted, RowReader } from './row-reader.ts';
import { type Tables, unknownEdges } from './tables.ts';

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
export function formatB(tables: Tables): Dialect {
  return {
    format: 'B',
    priorityOrder: 'desc',
    rows: (cache) => readRows(tables, cache),
    wordOf: (taskId) => {
      const row = findTask(tables, taskId);
      return row && textOf(row.status);
    },
    setStatus: (change) => setStatus(tables, change),
    log: (outcome) => log(tables, outcome),
  };
}

/** What else the file says about a row, beyond its own cells. */
interface Around {
  readonly edges: readonly Cells[];
  readonly criteria: readonly Cells[];
  readonly agent: string | undefined;
  readonly parent: string | undefined;
}

function readRows(tables: Tables, cache: RowCache): { rows: PrdRow[]; refused: RefusedRow[] } {
  const cells = tables.select('tasks', COLUMNS, 'order by rowid');
  const around = surroundings(tables, cells);
  const rows: PrdRow[] = [];
  const refused: RefusedRow[] = [];
  for (const row of cells) {
    const more = around(row);
    if (isId('task', idOf(row))) rows.push(cache.row([row, more], () => rowOf(row, more)));
    else refused.push({ row: quoted(idOf(row)), problem: 'its id cannot be the id of a task' });
  }
  return { rows, refused };
}

function surroundings(tables: Tables, tasks: readonly Cells[]): (row: Cells) => Around {
  const ofTask = ({ task_display_id }: Cells) => textOf(task_display_id);
  const edges = readEdges(tables);
  const criteria = tables.select('acceptance_criteria', ['task_display_id', 'criterion', 'completed']);
  const edgesOf = Map.groupBy(edges, ofTask);
  const criteriaOf = Map.groupBy(criteria, ofTask);
  const names = new Map(tables.select('agents', ['id', 'name']).map(({ id, name }) => [textOf(id), textOf(name)]));
  const ids = new Map(tasks.map((row) => [textOf(row.id), idOf(row)]));
  const named = (known: ReadonlyMap<string, string>, cell: Cell) =>
    isEmpty(cell) ? undefined : (known.get(textOf(cell)) ?? textOf(cell));
  return (row) => ({
    edges: edgesOf.get(textOf(row.display_id)) ?? [],
    criteria: criteriaOf.get(textOf(row.display_id)) ?? [],
    agent: named(names, row.assigned_agent),
    parent: named(ids, row.parent_id),
  });
}

/** A table of dependencies that cannot be read stops the reading: without them everything would begin at once. */
function readEdges(tables: Tables): Cells[] {
  const columns = tables.columns('task_dependencies');
  if (columns.size > 0 && !EDGE.every((name) => columns.has(name))) throw unknownEdges(columns);
  return tables.select('task_dependencies', [...EDGE, 'dependency_type']);
}
const EDGE = ['task_display_id', 'depends_on_display_id'];

const idOf = (row: Cells): string => textOf(isEmpty(row.display_id) ? row.id : row.display_id);

function rowOf(cells: Cells, { edges, criteria, agent, parent }: Around): Omit<PrdRow, 'sums'> {
  const row = new RowReader(cells);
  const word = row.text('status');
  const says = () => `its status is ${quoted(word)}, not one of ${knownWords('B')}`;
  const status = row.known('status', readStatus('B', word), OPEN, says);
  const priority = row.text('priority');
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
      acceptance_criteria: criteria.map(criterion).join('\n'),
      depends_on: dependsOn(row, edges),
      ...row.extras(),
      estimated_minutes: row.amount('estimated_minutes', ['estimated_duration']),
      parent_task_id: parent,
      origin: 'prd',
      created_at: readTime(row.text('created_at')),
    },
    ...status,
    word,
    agent,
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
function findTask(tables: Tables, taskId: string): Cells | undefined {
  const hasNumber = tables.columns('tasks').has('display_id');
  const find = (where: string) => tables.get(`select id, status from tasks where ${where}`, taskId);
  return hasNumber ? (find('display_id = ?') ?? find('id = ? and display_id is null')) : find('id = ?');
}

function setStatus(tables: Tables, { task_id, phase, agent, at }: Correction): void {
  const task = findTask(tables, task_id);
  if (!task) return;
  const time = writeTime('B', at);
  const id = textOf(task.id);
  const agentRow = agent === undefined ? undefined : agentId(tables, agent, time);
  const values = {
    status: writeStatus('B', phase),
    assigned_agent: phase === 'open' ? null : agentRow,
    updated_at: time,
    completed_at: phase === 'completed' ? time : null,
  };
  tables.update('tasks', values, { column: 'id', is: id });
  keepAgents(tables, id, phase === 'running' ? agentRow : undefined, time);
}

/** An agent is working on its current task and idle without one; a task has at most one agent at it. */
function keepAgents(tables: Tables, task: string, agent: string | undefined, time: string): void {
  if (!tables.columns('agents').has('current_task_id')) return;
  const leave = `update agents set current_task_id = null, status = 'idle', last_active = ? where current_task_id = ?`;
  tables.run(leave, time, task);
  if (agent === undefined) return;
  const working = { status: 'working', current_task_id: task, last_active: time };
  tables.update('agents', working, { column: 'id', is: agent });
}

/** The UUID of an agent, whose row is made if there is none: a task may only name an agent that exists. */
function agentId(tables: Tables, name: string, time: string): string | undefined {
  if (tables.columns('agents').size === 0) return undefined;
  const found = tables.get('select id from agents where name = ? or id = ?', name, name);
  if (found) return textOf(found.id);
  const id = randomUUID();
  const next = tables.columns('agents').has('display_id')
    ? tables.get('select coalesce(max(display_id), 0) + 1 as number from agents')?.number
    : undefined;
  tables.insert('agents', {
    id,
    name,
    status: 'idle',
    created_at: time,
    last_active: time,
    display_id: next,
  });
  return id;
}

function log(tables: Tables, { event, task_id, agent_id, at, payload }: Outcome): boolean {
  const columns = tables.columns('task_logs');
  const task = columns.size > 0 ? findTask(tables, task_id) : undefined;
  if (!task) return false;
  const time = writeTime('B', at);
  tables.insert('task_logs', {
    id: columns.get('id')?.includes('int') ? undefined : randomUUID(),
    task_id: textOf(task.id),
    agent_id: agent_id === undefined ? null : (agentId(tables, agent_id, time) ?? null),
    action: event,
    details: JSON.stringify(payload),
    created_at: time,
  });
  return true;
}
