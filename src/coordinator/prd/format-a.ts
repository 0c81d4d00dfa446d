import { isId } from '../../redis/ids.ts';
import type { Outcome } from '../tasks/task-sink.ts';
import { type Cells, idsOf, isEmpty, numberOf, textOf } from './cells.ts';
import type { Dialect } from './dialect.ts';
import { knownWords, OPEN, readStatus, readTime, writeStatus, writeTime } from './mapping.ts';
import type { Correction, PrdRow, RefusedRow } from './prd-db.ts';
import type { RowCache } from './row-cache.ts';
import { quoted, RowReader } from './row-reader.ts';
import { type Tables, unknownEdges } from './tables.ts';

const COLUMNS = [
  'id',
  'task_id',
  'display_id',
  'title',
  'description',
  'category',
  'epic',
  'priority',
  'estimated_hours',
  'status',
  'depends_on',
  'assigned_agent',
  'tech_stack',
  'files_to_modify',
  'files_to_read',
  'resources',
  'acceptance_criteria',
  'agent_type',
  'requires',
  'required_capabilities',
  'timeout_seconds',
  'rollback_strategy',
  'if_dependency_fails',
  'parent_task_id',
  'created_at',
];

/** Unsaid priorities are in the middle of 1 to 10, whichever end is urgent. */
const UNSAID_PRIORITY = 5;

const UNSAID_STATUS = 'pending';

const CREATE_LOG = `create table redis_coordination (
  id integer primary key autoincrement,
  event_type text not null,
  task_id text,
  agent_id text,
  payload text,
  created_at text not null default current_timestamp
)`;

/** Format A: text `task_id`, dependencies as a JSON list in `depends_on`, in the table task_dependencies, or both. */
export function formatA(tables: Tables): Dialect {
  const hasStatus = tables.columns('tasks').has('status');
  return {
    format: 'A',
    priorityOrder: undefined,
    rows: (cache) => readRows(tables, cache),
    wordOf(taskId) {
      const select = `select ${hasStatus ? 'status' : 'null'} as word from tasks where task_id = ?`;
      const row = tables.get(select, taskId);
      return row && (isEmpty(row.word) ? UNSAID_STATUS : textOf(row.word));
    },
    setStatus: (change) => setStatus(tables, change),
    log: (outcome) => log(tables, outcome),
  };
}

function readRows(tables: Tables, cache: RowCache): { rows: PrdRow[]; refused: RefusedRow[] } {
  const rows: PrdRow[] = [];
  const refused: RefusedRow[] = [];
  const cells = tables.select('tasks', COLUMNS, 'order by rowid');
  const edges = readEdges(tables, cells);
  for (const row of cells) {
    const id = textOf(row.task_id);
    const more = edges.get(id) ?? [];
    if (isId('task', id)) rows.push(cache.row([row, more], () => rowOf(row, more)));
    else refused.push({ row: quoted(row.task_id), problem: 'its task_id cannot be the id of a task' });
  }
  return { rows, refused };
}

function rowOf(cells: Cells, more: readonly string[]): Omit<PrdRow, 'sums'> {
  const row = new RowReader(cells);
  const word = row.text('status') || UNSAID_STATUS;
  const says = () => `its status is ${quoted(word)}, not one of ${knownWords('A')}`;
  const status = row.known('status', readStatus('A', word), OPEN, says);
  const listed = row.known('depends_on', idsOf(cells.depends_on), [], () => {
    return `its depends_on is no JSON list of task ids: ${quoted(cells.depends_on)}`;
  });
  const id = row.text('task_id');
  return {
    task: {
      // Checked by the caller.
      task_id: id as PrdRow['task']['task_id'],
      title: row.text('title') || id,
      description: row.text('description'),
      category: row.text('category'),
      epic: row.text('epic'),
      priority: priorityOf(row),
      acceptance_criteria: row.text('acceptance_criteria'),
      depends_on: [...new Set([...listed, ...more])],
      ...row.extras(),
      estimated_minutes: row.amount('estimated_minutes', ['estimated_hours'], 60),
      parent_task_id: row.text('parent_task_id') || undefined,
      origin: 'prd',
      created_at: readTime(row.text('created_at')),
    },
    ...status,
    word,
    agent: row.text('assigned_agent') || undefined,
    problems: row.problems,
  };
}

function priorityOf(row: RowReader): number {
  const cell = row.cell('priority');
  if (isEmpty(cell)) return UNSAID_PRIORITY;
  return row.known('priority', numberOf(cell), UNSAID_PRIORITY, () => `its priority is ${quoted(cell)}, no number`);
}

/** Column names under which such a table is met; the last pair is the other format's. */
const EDGE_COLUMNS = [
  ['task_id', 'depends_on_task_id'],
  ['task_id', 'depends_on'],
  ['task_id', 'depends_on_id'],
  ['task_id', 'dependency_id'],
  ['task_display_id', 'depends_on_display_id'],
] as const;

/** The dependencies that stand in a table of their own, by task. One that cannot be read stops the reading. */
function readEdges(tables: Tables, tasks: readonly Cells[]): ReadonlyMap<string, string[]> {
  const columns = tables.columns('task_dependencies');
  const edges = new Map<string, string[]>();
  if (columns.size === 0) return edges;
  const pair = EDGE_COLUMNS.find((names) => names.every((name) => columns.has(name)));
  if (!pair) throw unknownEdges(columns);
  const named = pair[0] === 'task_id' ? textOf : nameByNumber(tasks);
  for (const row of tables.select('task_dependencies', pair)) {
    const id = named(row[pair[0]]);
    edges.set(id, [...(edges.get(id) ?? []), named(row[pair[1]])]);
  }
  return edges;
}

function nameByNumber(tasks: readonly Cells[]): typeof textOf {
  const names = new Map(tasks.map((row) => [textOf(row.display_id), textOf(row.task_id)]));
  return (number) => names.get(textOf(number)) ?? `#${textOf(number)}`;
}

function setStatus(tables: Tables, { task_id, phase, agent, at }: Correction): void {
  const values = {
    status: writeStatus('A', phase),
    // Who did it stays on record; a task that is open again is nobody's.
    assigned_agent: phase === 'open' ? null : agent,
    updated_at: writeTime('A', at),
  };
  tables.update('tasks', values, { column: 'task_id', is: task_id });
}

function log(tables: Tables, { event, task_id, agent_id, at, payload }: Outcome): boolean {
  if (!tables.has('redis_coordination')) tables.define(CREATE_LOG);
  tables.insert('redis_coordination', {
    event_type: event,
    task_id,
    agent_id: agent_id ?? null,
    payload: JSON.stringify(payload),
    created_at: writeTime('A', at),
  });
  return true;
}
