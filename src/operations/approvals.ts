import { z } from 'zod';
import type { Answer } from '../approvals/answers.ts';
import { type AnswerAction, type ApprovalRequest, approvalIdSchema, reviewerSchema } from '../approvals/request.ts';
import { taskIdSchema } from '../coordinator/tasks/task.ts';
import { ReeveError } from '../errors.ts';
import { decidedShape, requestAnswer, requestShape, riskShape, tallyShape } from './approval-answers.ts';
import { approvalBatch } from './approval-batch.ts';
import { defineOperation, type Operation } from './operation.ts';
import type { Rooms } from './rooms.ts';

const approval = approvalIdSchema.describe('Which request');
const hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/, 'must be a config hash: 64 hexadecimal digits')
  .optional()
  .describe('Config hash of what was looked at; the answer is refused if it is something else by now');
const because = z.string().max(10_000);
const errors = ['APPROVAL_UNKNOWN', 'APPROVAL_DENIED', 'APPROVAL_STALE', 'APPROVAL_SETTLED'] as const;

/** What waits for whom, and what people say to it. */
export const approvalOperations: readonly Operation[] = [
  defineOperation({
    name: 'approval.list',
    summary: 'List what waits for an answer, worst consequence first',
    access: 'read',
    input: z.object({
      reviewer: reviewerSchema.optional().describe('Whose questions; default: your own'),
      all: z.boolean().default(false).describe('Those of everybody, in the order in which they are due'),
      overdue: z.boolean().default(false).describe('Only what should have been answered by now'),
      escalated: z.boolean().default(false).describe('Only what went to a next level, or found nobody left there'),
      due_before: z.iso.datetime({ offset: true }).optional().describe('Only what is due before this'),
      task: taskIdSchema.optional().describe('All about this task, the answered ones included'),
      limit: z.int().min(1).max(1_000).default(50).describe('At most this many'),
      cursor: z.string().max(400).optional().describe('Where the page before ended'),
    }),
    output: z.object({ items: z.array(requestShape), total: z.int(), next_cursor: z.string().optional() }),
    errors: ['BAD_CURSOR'],
    http: { method: 'GET', path: '/approvals' },
    cli: {
      words: 'approval list',
      columns: ['approval_id', 'risk', 'priority', 'due_at', 'tier', 'reviewer_id', 'status', 'title'],
      examples: ['reeve approval list', 'reeve approval list --all --overdue', 'reeve approval list --task T-1'],
    },
    run: async ({ rooms, caller }, { reviewer, all, task, limit, cursor, ...filter }) => {
      const { desk } = rooms.approvals;
      if (task) {
        const items = await titled(rooms, await desk.about(rooms.tasks.store.adeId(task)));
        return { items, total: items.length };
      }
      const page = await desk.inbox(all ? undefined : (reviewer ?? caller.id), limit, cursor, wanted(filter, rooms));
      return {
        items: await titled(rooms, page.items),
        total: page.total,
        ...(page.next !== undefined && { next_cursor: page.next }),
      };
    },
  }),
  defineOperation({
    name: 'approval.show',
    summary: 'Show a request: what it is about, how risky, who was asked, who agreed',
    access: 'read',
    input: z.object({ approval }),
    output: z.object({
      ...requestShape.shape,
      task_state: z.string(),
      assessment: riskShape.optional(),
      tally: tallyShape,
      requests: z.array(z.object({ approval_id: z.string(), reviewer_id: z.string(), status: z.string() })),
      comments: z.array(z.object({ by: z.string(), at: z.string(), text: z.string() })),
      if_unanswered: z.string().optional().describe('What happens if nobody answers until it is due'),
    }),
    errors: ['APPROVAL_UNKNOWN'],
    http: { method: 'GET', path: '/approvals/{approval}' },
    cli: { words: 'approval show', args: ['approval'], view: 'approval', examples: ['reeve approval show T-1.1'] },
    run: async ({ rooms }, { approval: id }) => {
      const { desk } = rooms.approvals;
      const request = await desk.get(id);
      const [item] = await titled(rooms, [request]);
      const { task_id } = request;
      const isOpen = request.status === 'PENDING';
      const [state, tally, all, comments, assessment, outlook] = await Promise.all([
        rooms.tasks.store.connection.commands.get(rooms.tasks.store.keys.taskState(task_id)),
        desk.tally(task_id),
        desk.about(task_id),
        desk.comments(task_id),
        desk.risk(task_id),
        isOpen ? rooms.approvals.escalation.outlook(request) : undefined,
      ]);
      const requests = all.map(({ approval_id, reviewer_id, status }) => ({ approval_id, reviewer_id, status }));
      const known = { ...(assessment && { assessment }), ...(outlook && { if_unanswered: outlook }) };
      return { ...item!, ...known, task_state: state ?? '', tally, requests, comments };
    },
  }),
  defineOperation({
    name: 'approval.stats',
    summary: 'Show how a reviewer is doing: what waits, what was answered, by UTC day',
    access: 'read',
    input: z.object({
      reviewer: reviewerSchema.optional().describe('Who; default: yourself'),
      days: z.int().min(1).max(31).default(7).describe('How many days, today included'),
    }),
    output: z.object({
      reviewer_id: z.string(),
      pending_count: z.number(),
      approved_today: z.number(),
      rejected_today: z.number(),
      avg_response_time: z.number().optional().describe('Seconds'),
      last_action_at: z.string().optional(),
      days: z.array(z.object({ day: z.string(), approved: z.number(), rejected: z.number() })),
    }),
    errors: [],
    http: { method: 'GET', path: '/approvals/stats' },
    cli: {
      words: 'approval stats',
      args: ['reviewer'],
      examples: ['reeve approval stats', 'reeve approval stats rob --days 2'],
    },
    run: async ({ rooms, caller }, { reviewer = caller.id, days }) => ({
      reviewer_id: reviewer,
      ...(await rooms.approvals.desk.stats(reviewer, days)),
    }),
  }),
  answering('approve', 'approve', 'Agree to a task', because.default('').describe('Why')),
  answering('reject', 'reject', 'Refuse a task for good', because.min(1).describe('Why')),
  answering('request_changes', 'changes', 'Send a task back to its author', because.min(1).describe('What to change')),
  defineOperation({
    name: 'approval.withdraw',
    summary: 'Take an approval back, as long as nobody works on the task',
    access: 'decide',
    input: z.object({ approval, reason: because.min(1).describe('Why') }),
    output: z.object({ approval_id: z.string(), task_state: z.string() }),
    errors: [...errors],
    http: { method: 'POST', path: '/approvals/{approval}/withdraw' },
    cli: {
      words: 'approval withdraw',
      args: ['approval'],
      view: 'verdict',
      examples: ['reeve approval withdraw T-1.1 --reason "I had not seen the index"'],
    },
    run: async ({ rooms, caller }, { approval: id, reason }) => ({
      approval_id: id,
      task_state: await rooms.approvals.withdraw(id, caller.id, reason),
    }),
  }),
  defineOperation({
    name: 'approval.delegate',
    summary: 'Pass a question on to somebody else',
    access: 'decide',
    input: z.object({
      approval,
      to: reviewerSchema.describe('Who answers instead'),
      reason: because.default('').describe('Why'),
    }),
    output: z.object({ approval_id: z.string(), delegated_to: z.string(), asked: z.string() }),
    errors: [...errors],
    http: { method: 'POST', path: '/approvals/{approval}/delegate' },
    cli: {
      words: 'approval delegate',
      args: ['approval', 'to'],
      view: 'verdict',
      examples: ['reeve approval delegate T-1.1 bob --reason "he knows the schema"'],
    },
    run: async ({ rooms, caller }, { approval: id, to, reason }) => ({
      approval_id: id,
      delegated_to: to,
      asked: await rooms.approvals.delegate(id, caller.id, { to, reason }),
    }),
  }),
  approvalBatch,
];

interface Filter {
  readonly overdue: boolean;
  readonly escalated: boolean;
  readonly due_before?: string | undefined;
}

function wanted({ overdue, escalated, due_before }: Filter, { clock }: Rooms) {
  const limits = [...(overdue ? [clock.now()] : []), ...(due_before === undefined ? [] : [Date.parse(due_before)])];
  if (limits.length === 0 && !escalated) return undefined;
  return ({ due_at, tier, escalates }: ApprovalRequest) =>
    limits.every((limit) => Date.parse(due_at) <= limit) && (!escalated || tier > 0 || !escalates);
}

type Reason = z.ZodString | z.ZodDefault<z.ZodString>;

function answering(action: AnswerAction, word: string, summary: string, reason: Reason): Operation {
  const needsReason = action !== 'approve';
  return defineOperation({
    name: `approval.${word}`,
    summary,
    access: 'decide',
    limit: 'approvals:respond',
    input: z.object({ approval, reason, config_hash: hash }),
    output: decidedShape,
    errors: [...errors],
    http: { method: 'POST', path: `/approvals/{approval}/${action.replace('_', '-')}` },
    cli: {
      words: `approval ${word}`,
      args: ['approval'],
      view: 'verdict',
      examples: [`reeve approval ${word} T-1.1${needsReason ? ' --reason "It drops a table"' : ''}`],
    },
    run: async ({ rooms, caller }, { approval: id, reason: why, config_hash }) => {
      const answer: Answer = { approval: id, action, reason: why, hash: config_hash };
      const [outcome] = await rooms.approvals.answer(caller.id, [answer]);
      if (!outcome || 'error' in outcome) throw outcome?.error ?? new ReeveError('APPROVAL_UNKNOWN', { approval: id });
      return { approval_id: id, task_state: outcome.state, again: outcome.again };
    },
  });
}

/** A request says little without the name of its task. */
async function titled(rooms: Rooms, requests: readonly ApprovalRequest[]) {
  const head = rooms.tasks.store.common().head.length;
  const ids = [...new Set(requests.map(({ task_id }) => task_id.slice(head)))];
  const tasks = await rooms.tasks.views.tasks(ids);
  return requests.map((request) => requestAnswer(request, tasks.get(request.task_id.slice(head))?.title ?? ''));
}
