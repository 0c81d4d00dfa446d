import { z } from 'zod';
import { agentSchema } from '../coordinator/locks/lock.ts';
import { taskIdSchema } from '../coordinator/tasks/task.ts';
import { ReeveError } from '../errors.ts';
import { ENCODINGS, executionSchema, isOwed } from '../executions/execution.ts';
import type { FilePart } from '../files/file-store.ts';
import { type Context, defineOperation, type Operation } from './operation.ts';
import { leaseInputs, leaseOf, notYours } from './task-answers.ts';

const task = taskIdSchema.describe('Which task');
const agent = agentSchema.describe('Who speaks');
const data = z.string().default('').describe('What is to be kept, written as encoding says');
const encoding = z.enum(ENCODINGS).default('utf8').describe('utf8: data is text. base64: data stands for bytes');
const PAGE_BYTES = 1_048_576;
const page = {
  offset: z.int().min(0).default(0).describe('From this byte on'),
  limit: z.int().min(1).max(PAGE_BYTES).default(PAGE_BYTES).describe('At most so many bytes'),
};
const partShape = z
  .object({
    task_id: z.string(),
    bytes: z.int().describe('Of all of it'),
    offset: z.int(),
    next_offset: z.int().optional().describe('Where it goes on; absent at its end'),
    encoding: z.enum(ENCODINGS),
    data: z.string(),
  })
  .meta({ id: 'FilePart' });
const executionShape = executionSchema
  .omit({ stash: true })
  .extend({
    task_id: z.string(),
    lock: z.string().describe('What whoever works on it, or undoes it, has to hold'),
    is_rollback_owed: z.boolean().describe('An attempt was begun, not finished and not undone'),
    next: z.string().optional().describe('What a person could do about it'),
  })
  .meta({ id: 'Execution' });

/** What attempts leave behind: what they wrote, and what undoes them. */
export const executionOperations: readonly Operation[] = [
  defineOperation({
    name: 'task.execution',
    summary: 'Show how the last attempt at a task went, and whether it has to be undone',
    access: 'read',
    input: z.object({ task }),
    output: executionShape,
    errors: ['TASK_UNKNOWN'],
    http: { method: 'GET', path: '/tasks/{task}/execution' },
    cli: { words: 'task execution', args: ['task'], examples: ['reeve task execution T-1'] },
    run: async ({ rooms }, { task: id }) => {
      const { stash: _, ...execution } = await rooms.executions.show(id);
      const is_rollback_owed = isOwed(execution);
      const next = is_rollback_owed ? `reeve task rollback ${id}` : undefined;
      const lock = `task:${rooms.tasks.store.adeId(id)}`;
      return { task_id: id, lock, ...execution, is_rollback_owed, next };
    },
  }),
  defineOperation({
    name: 'task.output',
    summary: 'Show what the last attempt at a task wrote, all of it',
    description: 'In parts of at most a megabyte: ask again from next_offset. The command prints all of it, as it was.',
    access: 'read',
    input: z.object({ task, ...page }),
    output: partShape,
    errors: ['TASK_UNKNOWN', 'NO_OUTPUT', 'FILE_GONE', 'FILE_ELSEWHERE', 'FILES_UNAVAILABLE'],
    http: { method: 'GET', path: '/tasks/{task}/output' },
    cli: {
      words: 'task output',
      args: ['task'],
      local: 'task-output',
      takesSettings: false,
      examples: ['reeve task output T-1', 'reeve task output T-1 > t-1.log'],
    },
    run: async ({ rooms }, { task: id, offset, limit }) => {
      const part = await rooms.executions.readOutput(id, { offset, length: limit });
      if (!part) throw new ReeveError('NO_OUTPUT', { task: id });
      return partAnswer(id, part, offset);
    },
  }),
  defineOperation({
    name: 'task.stash',
    summary: 'Show what was saved to undo an attempt at a task',
    description:
      'For people who run the place, and for the agent that has the task: it may hold what the change was about.',
    access: 'work',
    input: z.object({ task, agent: agent.optional(), ...page }),
    output: partShape,
    errors: ['TASK_UNKNOWN', 'NOTHING_TO_UNDO', 'FILE_GONE', 'FILE_ELSEWHERE', 'FILES_UNAVAILABLE'],
    http: { method: 'GET', path: '/tasks/{task}/stash' },
    cli: {
      words: 'task stash',
      args: ['task'],
      local: 'task-output',
      takesSettings: false,
      examples: ['reeve task stash T-1 > t-1.stash'],
    },
    run: async (context, { task: id, offset, limit }) => {
      await refuseUnlessHolder(context, id);
      const part = await context.rooms.executions.readStash(id, { offset, length: limit });
      if (!part) throw new ReeveError('NOTHING_TO_UNDO', { task: id });
      return partAnswer(id, part, offset);
    },
  }),
  defineOperation({
    name: 'work.stash',
    summary: 'Save what undoes your change, before you make it',
    description:
      'Bound to your lease. The first one stands until it was used: a later one could save what a broken attempt left behind. If the attempt fails, it is used as the rollback_strategy of the task says.',
    access: 'work',
    input: z.object({
      task,
      agent,
      data,
      encoding,
      command: z.string().max(4_096).default('').describe('What undoes the change with it, for people to see'),
      ...leaseInputs,
    }),
    output: z.object({ task_id: z.string(), at: z.string(), again: z.boolean() }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN', 'STASH_STANDS', 'FILE_TOO_LARGE', 'FILES_UNAVAILABLE'],
    http: { method: 'POST', path: '/tasks/{task}/stash', isLarge: true },
    cli: {
      words: 'stash',
      args: ['task', 'data'],
      local: 'keep-file',
      takesSettings: false,
      switches: { 'file=path': 'a file to save, in place of data; - is standard input' },
      examples: ['reeve stash T-1 --file before.sql --agent ann', 'reeve stash T-1 \'{"version": 41}\' --agent ann'],
    },
    run: async ({ rooms }, input) => {
      const kept = await rooms.executions.stash(leaseOf(input), bytesOf(input), input.command);
      if (kept.outcome === 'stands')
        throw new ReeveError('STASH_STANDS', { task: input.task, at: kept.at, by: kept.by });
      if (kept.outcome === 'late' || kept.outcome === 'unknown') throw notYours(kept, input.task, input.agent);
      return { task_id: input.task, at: kept.at, again: kept.outcome === 'same' };
    },
  }),
  defineOperation({
    name: 'work.output',
    summary: 'Hand in what your attempt wrote',
    description: 'Short ones are kept in Redis, long ones in a file, with their beginning and end beside the task.',
    access: 'work',
    input: z.object({ task, agent, data, encoding, ...leaseInputs }),
    output: z.object({
      task_id: z.string(),
      bytes: z.int(),
      output_key: z.string().optional().describe('Where all of it lies, if it is long'),
    }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN', 'FILE_TOO_LARGE', 'FILES_UNAVAILABLE'],
    http: { method: 'POST', path: '/tasks/{task}/output', isLarge: true },
    cli: {
      words: 'output',
      args: ['task', 'data'],
      local: 'keep-file',
      takesSettings: false,
      switches: { 'file=path': 'a file to hand in, in place of data; - is standard input' },
      examples: ['reeve output T-1 --file run.log --agent ann'],
    },
    run: async ({ rooms }, input) => {
      const bytes = bytesOf(input);
      const kept = await rooms.executions.output(leaseOf(input), bytes);
      if (kept.outcome === 'late' || kept.outcome === 'unknown') throw notYours(kept, input.task, input.agent);
      const key = kept.outcome === 'kept' ? kept.key : undefined;
      return { task_id: input.task, bytes: bytes.length, ...(key && { output_key: key }) };
    },
  }),
  defineOperation({
    name: 'work.rolled_back',
    summary: 'Say how undoing your attempt went, while you still have the task',
    access: 'work',
    input: z.object({
      task,
      agent,
      outcome: z.enum(['done', 'failed', 'manual']).describe('manual: a person has to do it'),
      reason: z.string().max(2_000).default('').describe('What a person should know of it'),
      ...leaseInputs,
    }),
    output: z.object({ task_id: z.string(), at: z.string() }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/rolled-back' },
    cli: {
      words: 'rolled-back',
      args: ['task'],
      view: 'verdict',
      examples: ['reeve rolled-back T-1 --agent ann --outcome done'],
    },
    run: async ({ rooms }, input) => {
      const { outcome, reason } = input;
      const noted = await rooms.executions.rolledBack(leaseOf(input), { outcome, reason, isPerson: false });
      if (noted.outcome === 'late' || noted.outcome === 'unknown') throw notYours(noted, input.task, input.agent);
      return { task_id: input.task, at: noted.outcome === 'noted' ? noted.at : '' };
    },
  }),
  defineOperation({
    name: 'task.rollback',
    summary: 'Undo an attempt that was begun and not finished, or say that it was undone',
    description:
      'Without an outcome the command shows what there is to undo and how. With --exec it runs a command with what was saved, under the locks of the task, and says how that went. A task that waited for this goes on afterwards.',
    access: 'operate',
    input: z.object({
      task,
      outcome: z.enum(['done', 'failed']).describe('How it went'),
      reason: z.string().max(2_000).default('').describe('What there is to say about it'),
    }),
    output: z.object({ task_id: z.string(), outcome: z.string(), at: z.string(), status: z.string() }),
    errors: ['TASK_UNKNOWN', 'NOTHING_TO_UNDO', 'TASK_BUSY'],
    http: { method: 'POST', path: '/tasks/{task}/rollback' },
    cli: {
      words: 'task rollback',
      args: ['task'],
      local: 'task-rollback',
      takesSettings: false,
      switches: { 'exec=command': 'run this command by /bin/sh; REEVE_STASH_FILE has what was saved' },
      examples: [
        'reeve task rollback T-1 --outcome done --reason "restored by hand"',
        'reeve task rollback T-1 --outcome done',
      ],
    },
    run: async ({ rooms, caller }, { task: id, outcome, reason }) => {
      const lease = { task: id, agent: caller.id };
      const noted = await rooms.executions.rolledBack(lease, { outcome, reason, isPerson: true });
      switch (noted.outcome) {
        case 'noted':
          return { task_id: id, outcome, at: noted.at, status: noted.status };
        case 'nothing':
          throw new ReeveError('NOTHING_TO_UNDO', { task: id });
        case 'running':
          throw new ReeveError('TASK_BUSY', { task: id, agent: caller.id, why: `${noted.agent} works on it` });
        default:
          throw new ReeveError('TASK_UNKNOWN', { task: id });
      }
    },
  }),
];

const bytesOf = ({ data: text, encoding: written }: { data: string; encoding: 'utf8' | 'base64' }): Buffer =>
  Buffer.from(text, written);

/** A page may end within a character: then it is sent as bytes. */
function partAnswer(task_id: string, { bytes, size }: FilePart, offset: number) {
  const end = offset + bytes.length;
  const text = bytes.toString('utf8');
  const isText = Buffer.from(text).equals(bytes);
  return {
    task_id,
    bytes: size,
    offset,
    ...(end < size && { next_offset: end }),
    encoding: isText ? ('utf8' as const) : ('base64' as const),
    data: isText ? text : bytes.toString('base64'),
  };
}

async function refuseUnlessHolder({ rooms, caller }: Context, task: string): Promise<void> {
  if (caller.access.has('work')) return;
  const standing = (await rooms.tasks.standings([taskIdSchema.parse(task)])).get(taskIdSchema.parse(task));
  if (standing?.station === 'working' && standing.agent === caller.id) return;
  throw new ReeveError('DENIED', { caller: caller.id, why: `${task} is not in its hands` });
}
