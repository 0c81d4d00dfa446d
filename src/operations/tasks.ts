import { z } from 'zod';
import { RESET_SCOPES, reset } from '../coordinator/tasks/reset.ts';
import { PHASES, STATIONS } from '../coordinator/tasks/station.ts';
import { taskIdSchema, taskSchema, userIdSchema, WORK_STATUSES } from '../coordinator/tasks/task.ts';
import { NODE_CURSOR, type TaskNode } from '../coordinator/tasks/task-edges.ts';
import { CURSOR } from '../coordinator/tasks/task-pages.ts';
import { ReeveError } from '../errors.ts';
import { refuseForeignTask } from './approval-answers.ts';
import { defineOperation, type Operation } from './operation.ts';
import { countsShape, detailAnswer, detailShape, rowShape } from './task-answers.ts';

const task = taskIdSchema.describe('Which task');
const pausableSchema = z
  .string()
  .min(1)
  .max(2_000)
  .default('all')
  .describe('all, a type of agent, or resource:TYPE:ID (of a file: resource:PATH)');

const nodeAnswer = (node: TaskNode) => ({ ...node, depends_on: [...node.depends_on] });

/** Looking at tasks, and what people say about them. */
export const taskOperations: readonly Operation[] = [
  defineOperation({
    name: 'task.list',
    summary: 'List tasks',
    access: 'read',
    input: z.object({
      station: z.enum(STATIONS).optional().describe('Only those that stand there'),
      status: z.enum(WORK_STATUSES).optional().describe('Only those with this status'),
      agent: z.string().max(200).optional().describe('Only those that this one works on now'),
      type: z.string().max(200).optional().describe('Only those for this type of agent'),
      text: z.string().max(500).optional().describe('Only those whose id or title has this in it'),
      epic: z.string().optional().describe('Only those of it'),
      author: userIdSchema.optional().describe('Only those that this one made'),
      resource: z.string().min(1).max(2_000).optional().describe('Only those that work on it: TYPE:ID, or a path'),
      tag: z.string().min(1).max(100).optional().describe('Only those with this tag'),
      limit: z.int().min(1).max(10_000).default(100).describe('At most this many'),
      cursor: z.string().regex(CURSOR).optional().describe('The next_cursor of the page before'),
    }),
    output: z.object({
      items: z.array(rowShape),
      total: z.int().optional().describe('How many there are, if nothing was asked for'),
      next_cursor: z.string().optional(),
    }),
    errors: [],
    http: { method: 'GET', path: '/tasks' },
    cli: {
      words: 'task list',
      columns: ['task_id', 'station', 'priority', 'agent_id', 'title', 'because'],
      examples: ['reeve task list', 'reeve task list --station ready', 'reeve task list --resource src/db.ts'],
    },
    mcp: {
      tool: 'find_tasks',
      description: 'List tasks by station (ready, working, waiting, done, failed …), agent, type, text or epic.',
      readOnly: true,
      idempotent: true,
    },
    run: async ({ rooms }, { limit, cursor, ...wanted }) => {
      const { items, total, next } = await rooms.tasks.pages.page(wanted, { limit, cursor });
      return { items: [...items], ...(total !== undefined && { total }), ...(next && { next_cursor: next }) };
    },
  }),
  defineOperation({
    name: 'task.graph',
    summary: 'Show what waits for what: of all tasks, or near one',
    access: 'read',
    input: z.object({
      task: taskIdSchema.optional().describe('Only what is near this one; it comes first'),
      hops: z.int().min(1).max(100).default(2).describe('How many steps from it, in both directions'),
      limit: z.int().min(1).max(10_000).default(1_000).describe('At most this many'),
      cursor: z.string().regex(NODE_CURSOR).optional().describe('The next_cursor of the page before'),
    }),
    output: z.object({
      items: z.array(z.object({ task_id: z.string(), status: z.enum(WORK_STATUSES), depends_on: z.array(z.string()) })),
      is_cut: z.boolean().optional().describe('There is more near it than `limit`'),
      next_cursor: z.string().optional(),
    }),
    errors: ['TASK_UNKNOWN'],
    http: { method: 'GET', path: '/tasks/graph' },
    cli: {
      words: 'task graph',
      columns: ['task_id', 'status', 'depends_on'],
      examples: ['reeve task graph', 'reeve task graph --task TASK-001 --hops 2'],
    },
    run: async ({ rooms }, { task: id, hops, limit, cursor }) => {
      const { edges } = rooms.tasks;
      if (id === undefined) {
        const { items, next } = await edges.page({ limit, cursor });
        return { items: items.map(nodeAnswer), ...(next && { next_cursor: next }) };
      }
      const found = await edges.around(id, { hops, limit });
      if (!found) throw new ReeveError('TASK_UNKNOWN', { task: id });
      return { items: found.items.map(nodeAnswer), is_cut: found.isCut };
    },
  }),
  defineOperation({
    name: 'task.show',
    summary: 'Show one task: where it stands, what it needs, what became of it',
    access: 'read',
    input: z.object({ task }),
    output: detailShape,
    errors: ['TASK_UNKNOWN'],
    http: { method: 'GET', path: '/tasks/{task}' },
    cli: { words: 'task show', args: ['task'], examples: ['reeve task show TASK-001'] },
    mcp: {
      tool: 'get_task',
      description: 'One task in full: description, acceptance criteria, dependencies, where it stands and why.',
      readOnly: true,
      idempotent: true,
    },
    run: async ({ rooms }, { task: id }) => {
      const detail = await rooms.tasks.views.detail(id);
      if (!detail) throw new ReeveError('TASK_UNKNOWN', { task: id });
      return detailAnswer(detail);
    },
  }),
  defineOperation({
    name: 'task.import',
    summary: 'Take in many tasks at once',
    access: 'operate',
    input: z.object({
      tasks: z
        .array(taskSchema.omit({ origin: true }).extend({ phase: z.enum(PHASES).default('open') }))
        .max(10_000)
        .describe('The tasks'),
    }),
    output: z.object({ admitted: z.int(), total: z.int() }),
    errors: [],
    http: { method: 'POST', path: '/tasks/import' },
    cli: { words: 'task admit', args: ['tasks'], view: 'verdict', examples: ['reeve task admit []'] },
    run: async ({ rooms }, { tasks }) => {
      const before = await rooms.tasks.size();
      await rooms.tasks.admit(tasks.map(({ phase, ...one }) => ({ task: { ...one, origin: 'api' }, phase })));
      const total = await rooms.tasks.size();
      return { admitted: total - before, total };
    },
  }),
  defineOperation({
    name: 'task.cancel',
    summary: 'Call a task off',
    access: 'cancel',
    input: z.object({ task, reason: z.string().max(2_000).default('called off').describe('Why') }),
    output: z.object({ task_id: z.string(), outcome: z.enum(['cancelled', 'ended']) }),
    errors: ['TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/cancel' },
    cli: {
      words: 'task cancel',
      args: ['task'],
      view: 'verdict',
      examples: ['reeve task cancel TASK-001 --reason unwanted'],
    },
    run: async (context, { task: id, reason }) => {
      await refuseForeignTask(context, id);
      const outcome = await context.rooms.tasks.cancelOne(id, reason, context.caller.id);
      if (outcome === 'unknown') throw new ReeveError('TASK_UNKNOWN', { task: id });
      return { task_id: id, outcome };
    },
  }),
  defineOperation({
    name: 'task.reset',
    summary: 'Clear what the queue knows; tasks of a file are loaded from it anew',
    access: 'admin',
    input: z.object({
      scope: z.enum(RESET_SCOPES).default('all').describe('What to clear'),
      yes: z.literal(true).describe('It cannot be undone: say so'),
    }),
    output: z.object({ scope: z.string(), keys: z.int() }),
    errors: [],
    http: { method: 'POST', path: '/tasks/reset' },
    cli: {
      words: 'task reset',
      args: ['scope'],
      view: 'verdict',
      examples: ['reeve task reset errors --yes', 'reeve task reset all --yes'],
    },
    run: async ({ rooms }, { scope }) => ({ scope, keys: await reset(rooms.tasks, scope) }),
  }),
  defineOperation({
    name: 'task.progress',
    summary: 'Show how far the work is',
    access: 'read',
    input: z.object({}),
    output: countsShape,
    errors: [],
    http: { method: 'GET', path: '/progress' },
    cli: { words: 'progress', examples: ['reeve progress'] },
    run: ({ rooms }) => rooms.tasks.views.progress(),
  }),
  defineOperation({
    name: 'errors.list',
    summary: 'Show what agents reported as errors, newest first',
    access: 'read',
    input: z.object({ limit: z.int().min(1).max(1_000).default(20).describe('At most this many') }),
    output: z.object({ items: z.array(z.object({ error: z.string() })) }),
    errors: [],
    http: { method: 'GET', path: '/errors' },
    cli: { words: 'errors', columns: ['error'], examples: ['reeve errors'] },
    run: async ({ rooms }, { limit }) => ({
      items: (await rooms.tasks.views.errors(limit)).map((error) => ({ error })),
    }),
  }),
  defineOperation({
    name: 'work.pause',
    summary: 'Hand out no more work: none at all, none of a type, or none on a resource',
    access: 'operate',
    input: z.object({
      what: pausableSchema,
      reason: z.string().max(500).default('paused').describe('Why'),
      until: z.iso.datetime({ offset: true }).optional().describe('Goes on by itself then'),
    }),
    output: z.object({ what: z.string(), paused: z.boolean(), listed: z.int() }),
    errors: [],
    http: { method: 'POST', path: '/pause' },
    cli: {
      words: 'pause',
      args: ['what'],
      view: 'verdict',
      examples: ['reeve pause --reason deploy', 'reeve pause codex', 'reeve pause resource:database:prod'],
    },
    run: async ({ rooms, caller }, { what, reason, until }) => {
      const ends = until ? Math.ceil(Date.parse(until) / 1000) : 0;
      const at = new Date(rooms.clock.now()).toISOString();
      return { what, paused: true, listed: await rooms.tasks.pauses.pause(what, { by: caller.id, at, reason, ends }) };
    },
  }),
  defineOperation({
    name: 'work.resume',
    summary: 'Hand out work again',
    access: 'operate',
    input: z.object({ what: pausableSchema }),
    output: z.object({ what: z.string(), paused: z.boolean(), listed: z.int() }),
    errors: [],
    http: { method: 'POST', path: '/resume' },
    cli: {
      words: 'resume',
      args: ['what'],
      view: 'verdict',
      examples: ['reeve resume', 'reeve resume resource:database:prod'],
    },
    run: async ({ rooms }, { what }) => ({ what, paused: false, listed: await rooms.tasks.pauses.resume(what) }),
  }),
];
