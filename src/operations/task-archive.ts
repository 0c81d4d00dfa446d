import { z } from 'zod';
import { documentSchema, ENDED_STATES } from '../archive/archived-task.ts';
import { agentSchema } from '../coordinator/locks/lock.ts';
import { taskIdSchema } from '../coordinator/tasks/task.ts';
import { authorOf } from './approval-answers.ts';
import { defineOperation, type Operation } from './operation.ts';
import type { Rooms } from './rooms.ts';
import { copyShape, writeCopy } from './task-drafts.ts';

const task = taskIdSchema.describe('Which task');
const rowShape = z.object({
  task_id: z.string(),
  state: z.enum(ENDED_STATES),
  title: z.string(),
  author: z.string(),
  created_at: z.string(),
  ended_at: z.string(),
  archived_at: z.string(),
});
const historyShape = z.object({
  at: z.string(),
  user: z.string(),
  action: z.string(),
  subject: z.string(),
  from: z.string(),
  to: z.string(),
  reason: z.string().optional(),
});
/** The newest rows of the audit log that are shown with a task. */
const HISTORY = 500;

/** Tasks that ended, also those that Redis has forgotten. */
export const taskArchiveOperations: readonly Operation[] = [
  defineOperation({
    name: 'task.archive',
    summary: 'List the archived tasks, those archived last first',
    description:
      'A task that ended is archived after tasks.archiveAfterDays, and stays in the archive when Redis forgets it.',
    access: 'read',
    input: z.object({
      state: z.enum(ENDED_STATES).optional().describe('Only those that ended so'),
      limit: z.int().min(1).max(1_000).default(50).describe('At most this many'),
      cursor: z
        .string()
        .regex(/^\d{1,15}$/)
        .optional()
        .describe('The next_cursor of the page before'),
    }),
    output: z.object({ items: z.array(rowShape), next_cursor: z.string().optional() }),
    errors: [],
    http: { method: 'GET', path: '/tasks/archive' },
    cli: {
      words: 'task archive',
      columns: ['task_id', 'state', 'ended_at', 'author', 'title'],
      examples: ['reeve task archive', 'reeve task archive --state REJECTED'],
    },
    run: async ({ rooms }, wanted) => {
      const { items, next } = await rooms.archive.list(wanted);
      return { items: [...items], ...(next && { next_cursor: next }) };
    },
  }),
  defineOperation({
    name: 'task.archive_now',
    summary: 'Archive what has ended, without waiting for the next turn',
    description:
      'The daemon does so by itself once an hour. What is archived already, and has not changed, is left alone.',
    access: 'operate',
    input: z.object({
      after_days: z.number().min(0).max(80).optional().describe('Ended so long ago; by default tasks.archiveAfterDays'),
    }),
    output: z.object({
      archived: z.int().describe('Copied to the archive'),
      unlisted: z.int().describe('Forgotten by Redis, and so taken out of its indexes'),
      lost: z.int().describe('Those of them that nobody had archived'),
    }),
    errors: [],
    http: { method: 'POST', path: '/tasks/archive' },
    cli: { words: 'task archive-now', view: 'verdict', examples: ['reeve task archive-now --after-days 0'] },
    run: ({ rooms, signal }, { after_days: days }) => rooms.archivist.archiveNow(days, signal),
  }),
  defineOperation({
    name: 'task.archived',
    summary: 'Show an archived task: what was to be done, what people said, what became of it',
    access: 'read',
    input: z.object({ task }),
    output: rowShape.extend({ document: documentSchema, history: z.array(historyShape) }),
    errors: ['ARCHIVED_TASK_UNKNOWN'],
    http: { method: 'GET', path: '/tasks/archive/{task}' },
    cli: { words: 'task archived', args: ['task'], examples: ['reeve task archived T-1 --json'] },
    run: async ({ rooms }, { task: id }) => {
      const [found, rows] = [await rooms.archive.get(id), await historyOf(rooms, id)];
      return { ...found, history: rows };
    },
  }),
  defineOperation({
    name: 'task.restore',
    summary: 'Write an archived task anew, as a draft',
    description:
      'The draft has an id of its own and says what it supersedes. It passes the gate like any other: nothing that was said of the archived one counts.',
    access: 'create',
    limit: 'tasks:create',
    input: z.object({
      task,
      agent: agentSchema.optional().describe('The agent that writes it, where it has no token of its own'),
    }),
    output: copyShape,
    errors: ['ARCHIVED_TASK_UNKNOWN', 'TASK_BUSY'],
    http: {
      method: 'POST',
      path: '/tasks/archive/{task}/restore',
      answers: { 201: 'Written' },
      status: () => 201,
    },
    cli: { words: 'task restore', args: ['task'], view: 'verdict', examples: ['reeve task restore T-1'] },
    run: async ({ rooms, caller }, { task: id, agent: writer }) => {
      const { document } = await rooms.archive.get(id);
      return writeCopy(rooms, document.data, authorOf(caller, writer));
    },
  }),
];

/** The audit log keeps it for good, so that it need not be kept twice. */
async function historyOf({ audit, tasks }: Pick<Rooms, 'audit' | 'tasks'>, task: string) {
  const rows = await audit.list({ task: tasks.store.adeId(task), limit: HISTORY });
  return rows.map(({ at, user, action, subject, from, to, reason }) => ({
    at,
    user,
    action,
    subject,
    from,
    to,
    ...(reason && { reason }),
  }));
}
