import { z } from 'zod';
import { previewSchema } from '../approvals/preview.ts';
import { agentSchema } from '../coordinator/locks/lock.ts';
import { taskIdSchema, taskSchema } from '../coordinator/tasks/task.ts';
import type { TaskDetail } from '../coordinator/tasks/task-view.ts';
import { ReeveError } from '../errors.ts';
import { REVIEWER_POLICY } from '../reviewer-policy.ts';
import { authorOf, refuseForeignTask, rulingAnswer, rulingShape } from './approval-answers.ts';
import { defineOperation, type Operation } from './operation.ts';
import type { Rooms } from './rooms.ts';
import { detailAnswer, detailShape } from './task-answers.ts';
import { copyShape, writeCopy, writeDraft } from './task-drafts.ts';

const task = taskIdSchema.describe('Which task');
const agent = agentSchema.optional().describe('The agent that writes it, where it has no token of its own');
const content = taskSchema.omit({ origin: true, created_at: true, task_id: true, priority: true, supersedes: true });
const priority = z.number().default(5).describe('How urgent, in the numbers of its fellows');

/** From a draft to the queue: what people write, and what the gate says to it. */
export const taskGateOperations: readonly Operation[] = [
  defineOperation({
    name: 'task.add',
    summary: 'Write a task as a draft',
    description: 'It waits for task.submit, which asks whoever must agree. With submit it does not wait.',
    access: 'create',
    limit: 'tasks:create',
    journal: { doneIf: ['TASK_BUSY'] },
    input: content.extend({
      task: task.describe('Its id'),
      priority,
      agent,
      submit: z.boolean().default(false).describe('Submit it at once'),
    }),
    output: detailShape,
    errors: ['TASK_BUSY', 'PREVIEW_FAILED', 'NOBODY_TO_ASK'],
    http: { method: 'POST', path: '/tasks', answers: { 201: 'Written' }, status: () => 201 },
    cli: {
      words: 'task add',
      args: ['task'],
      examples: ['reeve task add T-1 --title Tests --depends-on TASK-001 --files-to-modify test/ --submit'],
    },
    run: async ({ rooms, caller }, { task: id, agent: writer, submit, ...given }) => {
      const author = authorOf(caller, writer);
      await writeDraft(rooms, { ...given, task_id: id, origin: 'api' }, author);
      if (submit) await rooms.approvals.submit(id, author);
      return detailAnswer(await detailOf(rooms, id));
    },
  }),
  defineOperation({
    name: 'task.submit',
    summary: 'Submit a draft: it passes, or people are asked',
    access: 'submit',
    input: z.object({
      task,
      agent,
      due_seconds: z
        .int()
        .min(1)
        .optional()
        .describe('How long people have to answer; at most approval:max_timeout, by default approval:default_timeout'),
    }),
    output: rulingShape,
    errors: ['TASK_UNKNOWN', 'TASK_STATE', 'TASK_CHANGED', 'PREVIEW_FAILED', 'NOBODY_TO_ASK'],
    journal: { doneIf: ['TASK_STATE'] },
    http: { method: 'POST', path: '/tasks/{task}/submit', answers: { 202: 'Ruled upon' }, status: () => 202 },
    cli: { words: 'task submit', args: ['task'], view: 'ruling', examples: ['reeve task submit T-1'] },
    run: async (context, { task: id, agent: writer, due_seconds: dueSeconds }) => {
      await refuseForeignTask(context, id);
      const by = authorOf(context.caller, writer);
      return rulingAnswer(await context.rooms.approvals.submit(id, by, { dueSeconds }));
    },
  }),
  defineOperation({
    name: 'task.edit',
    summary: 'Change what is to be done; whoever agreed before is asked anew',
    access: 'create',
    input: content.partial().extend({ task, agent, priority: z.number().optional().describe('How urgent') }),
    output: detailShape,
    errors: ['TASK_UNKNOWN', 'TASK_STATE', 'TASK_OF_FILE'],
    http: { method: 'PATCH', path: '/tasks/{task}' },
    cli: { words: 'task edit', args: ['task'], examples: ['reeve task edit T-1 --description "Also the docs"'] },
    run: async (context, { task: id, agent: writer, ...given }) => {
      const { rooms, caller } = context;
      await refuseForeignTask(context, id);
      const { state, task: known } = await detailOf(rooms, id);
      if (known.origin === 'prd') throw new ReeveError('TASK_OF_FILE', { task: id });
      if (!EDITABLE.includes(state)) {
        throw new ReeveError('TASK_STATE', { task: id, state, what: 'editing', wanted: 'what nobody works on' });
      }
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      await rooms.tasks.amend([{ task_id: id, set, editor: authorOf(caller, writer) }]);
      return detailAnswer(await detailOf(rooms, id));
    },
  }),
  defineOperation({
    name: 'task.retry',
    summary: 'Try a task again: one that failed or backs off, or a copy of one that was refused',
    description:
      'A failed task comes back as it is, and passes the gate anew. One that was rejected or called off stays so; a copy of it takes its place.',
    access: 'operate',
    input: z.object({ task, reason: z.string().max(2_000).default('tried again').describe('Why'), agent }),
    output: copyShape.partial({ supersedes: true }),
    errors: ['TASK_UNKNOWN', 'TASK_BUSY'],
    http: { method: 'POST', path: '/tasks/{task}/retry' },
    cli: { words: 'task retry', args: ['task'], view: 'verdict', examples: ['reeve task retry TASK-001'] },
    run: async ({ rooms, caller }, { task: id, reason, agent: writer }) => {
      const { station, task: known } = await detailOf(rooms, id);
      if (known.origin === 'api' && (station === 'rejected' || station === 'cancelled')) {
        return writeCopy(rooms, known, authorOf(caller, writer));
      }
      const outcome = await rooms.tasks.reopen(id, reason, caller.id);
      if (outcome === 'running') {
        throw new ReeveError('TASK_BUSY', { task: id, agent: caller.id, why: 'it is being worked on' });
      }
      return { task_id: id, status: (await rooms.tasks.standings([id])).get(id)?.status ?? 'pending' };
    },
  }),
  defineOperation({
    name: 'task.preview',
    summary: 'Show what a task would change, and which locks that takes',
    access: 'read',
    input: z.object({ task }),
    output: previewSchema,
    errors: ['TASK_UNKNOWN'],
    http: { method: 'GET', path: '/tasks/{task}/preview' },
    cli: { words: 'task preview', args: ['task'], view: 'preview', examples: ['reeve task preview T-1'] },
    run: ({ rooms }, { task: id }) => rooms.approvals.preview(id),
  }),
  defineOperation({
    name: 'task.simulate',
    summary: 'Say what would become of a task if it were submitted',
    description: 'Give the id of a draft, or the content of a task that nobody has written yet. Nothing is changed.',
    access: 'read',
    input: content.partial().extend({
      task: task.optional().describe('A task that is there; or the id of one that is not'),
      agent,
    }),
    output: rulingShape,
    errors: [],
    http: { method: 'POST', path: '/tasks/simulate' },
    cli: {
      words: 'approval simulate',
      args: ['task'],
      view: 'ruling',
      examples: [
        'reeve approval simulate T-1',
        'reeve approval simulate --category infrastructure --files-to-modify src/',
      ],
    },
    run: async ({ rooms, caller }, { task: id = taskIdSchema.parse('draft'), agent: writer, ...given }) => {
      const known = (await rooms.tasks.views.tasks([id])).get(id);
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      const draft = { title: id, priority: 5, origin: 'api', ...known, ...set, task_id: id };
      return rulingAnswer(await rooms.approvals.simulate(taskSchema.parse(draft), authorOf(caller, writer)));
    },
  }),
  defineOperation({
    name: 'task.force_apply',
    summary: 'Let a task pass in spite of the gate; two admins must say so',
    description:
      'The first call asks, the same call by another admin within the hour, about the same content, lets it pass. Neither its author nor its last editor can be the second. Both are in the audit.',
    access: 'force',
    input: z.object({
      task,
      reason: z.string().min(1).max(2_000).describe('Why it cannot wait'),
      ticket: z.string().min(1).max(200).describe('The incident'),
    }),
    output: z.object({
      task_id: z.string(),
      outcome: z.enum(['waiting', 'forced']),
      until: z.string().optional().describe('When the second person must have agreed'),
      first: z.string().optional().describe('Who asked for it'),
    }),
    errors: ['TASK_UNKNOWN', 'TASK_STATE', 'TASK_CHANGED', 'OVERRIDE_DENIED'],
    http: { method: 'POST', path: '/tasks/{task}/force-apply' },
    cli: {
      words: 'task force-apply',
      args: ['task'],
      view: 'verdict',
      examples: ['reeve task force-apply T-1 --reason "the site is down" --ticket INC-7'],
    },
    run: async ({ rooms, caller }, { task: id, reason, ticket }) => ({
      task_id: id,
      ...(await rooms.approvals.force(id, caller.id, { reason, ticket })),
    }),
  }),
  defineOperation({
    name: 'task.override',
    summary: 'Do without what one policy asks for; two admins must say so',
    description:
      'For people who cannot be reached. What the other policies ask for stays to be met. The first call asks, the same call by another admin within the hour, about the same content, does it. Both are in the audit.',
    access: 'override',
    input: z.object({
      task,
      policy: REVIEWER_POLICY.shape.policy_id.describe('Which policy'),
      reason: z.string().min(1).max(2_000).describe('Why it cannot wait'),
      ticket: z.string().min(1).max(200).describe('The incident'),
    }),
    output: z.object({
      task_id: z.string(),
      outcome: z.enum(['waiting', 'waived']),
      until: z.string().optional().describe('When the second person must have agreed'),
      first: z.string().optional().describe('Who asked for it'),
      state: z.string().optional().describe('Where the task stands since'),
    }),
    errors: ['TASK_UNKNOWN', 'TASK_STATE', 'TASK_CHANGED', 'POLICY_UNKNOWN', 'OVERRIDE_DENIED'],
    http: { method: 'POST', path: '/tasks/{task}/override' },
    cli: {
      words: 'task override',
      args: ['task', 'policy'],
      view: 'verdict',
      examples: ['reeve task override T-1 prod-db --reason "both are on a plane" --ticket INC-7'],
    },
    run: async ({ rooms, caller }, { task: id, policy, reason, ticket }) => ({
      task_id: id,
      ...(await rooms.approvals.waive(id, policy, caller.id, { reason, ticket })),
    }),
  }),
  defineOperation({
    name: 'task.comment',
    summary: 'Say something about a task, for whoever looks at it next',
    access: 'read',
    input: z.object({ task, text: z.string().min(1).max(10_000).describe('What to say') }),
    output: z.object({ task_id: z.string(), at: z.string() }),
    errors: ['TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/comment' },
    cli: {
      words: 'task comment',
      args: ['task', 'text'],
      view: 'verdict',
      examples: ['reeve task comment T-1 "The backup was taken at ten"'],
    },
    run: async ({ rooms, caller }, { task: id, text }) => ({
      task_id: id,
      at: await rooms.approvals.comment(id, caller.id, text),
    }),
  }),
];

const EDITABLE: readonly string[] = ['DRAFT', 'SUBMITTED', 'REVIEWING', 'APPROVED'];

async function detailOf(rooms: Rooms, id: string): Promise<TaskDetail> {
  const detail = await rooms.tasks.views.detail(id);
  if (!detail) throw new ReeveError('TASK_UNKNOWN', { task: id });
  return detail;
}
