import { z } from 'zod';
import { agentSchema, LEASE_CLASS_NAMES, lockIdSchema } from '../coordinator/locks/lock.ts';
import { FAILURE_CLASSES } from '../coordinator/tasks/lease.ts';
import { resultSchema } from '../coordinator/tasks/result.ts';
import { agentTypeSchema, taskIdSchema } from '../coordinator/tasks/task.ts';
import { defineOperation, type Operation } from './operation.ts';
import { leaseInputs, leaseOf, leaseShape, notYours, refusal, taskShape, withoutLongOutput } from './task-answers.ts';

const task = taskIdSchema.describe('Which task');
const agent = agentSchema.describe('Who speaks');
const lease = leaseInputs;
const renewed = z.object({ task_id: z.string(), expires_at: z.string() });
const files = z.array(z.string()).optional().describe('What was changed');
const LONGEST_WAIT = 280;

/** What agents say: claim, begin, go on, finish. */
export const workOperations: readonly Operation[] = [
  defineOperation({
    name: 'work.claim',
    summary: 'Claim the next task',
    description:
      'Takes the most urgent task that fits, its lock, the locks of what it works on and a place of the agent, in one step. An agent whose hands are full gets what it has. 204: nothing to do now.',
    access: 'work',
    input: z.object({
      agent: agent.describe('Who asks'),
      type: agentTypeSchema.optional().describe('What kind of agent; default: as registered, or general-purpose'),
      capabilities: z.array(z.string()).optional().describe('What it can do; default: as registered'),
      task: task.optional().describe('Only this task'),
      wait: z.number().min(0).max(LONGEST_WAIT).default(0).describe('Seconds to wait if there is nothing'),
      lease_class: z.enum(LEASE_CLASS_NAMES).default('agent').describe('process beats by itself every 10 s'),
      lock_id: lockIdSchema.optional(),
    }),
    output: z.object({ task: taskShape, lease: leaseShape, again: z.boolean() }).or(z.object({ ready: z.int() })),
    errors: ['WORK_PAUSED', 'AGENT_CLOSED', 'TASK_BUSY', 'TASK_UNKNOWN'],
    http: {
      method: 'POST',
      path: '/agents/{agent}/claim',
      answers: { 200: 'A task', 204: 'Nothing to do' },
      status: (answer) => ('task' in answer ? 200 : 204),
    },
    cli: {
      words: 'next',
      view: 'claim',
      exits: [7],
      examples: ['reeve next --agent ann', 'reeve next --agent ann --type codex --wait 60 --json'],
    },
    mcp: {
      tool: 'claim_task',
      description:
        'Get your next task: what to do, its acceptance criteria and your lease. Returns the one you already have, if any. Report progress at least every 15 minutes, and finish it with finish_task. Wait at most 25 s.',
      readOnly: false,
      idempotent: true,
      most: { wait: 25 },
    },
    run: async ({ rooms, signal }, input) => {
      const { agent: who, wait, task: wanted } = input;
      const card = await rooms.roster.show(who);
      const request = {
        agent: who,
        type: input.type ?? card?.agent_type,
        capabilities: input.capabilities ?? card?.capabilities,
        task: wanted,
        leaseClass: input.lease_class,
        lockId: input.lock_id,
        places: card?.max_tasks,
      };
      const outcome = await rooms.taskDesk.claim(request, { waitMs: wait * 1000, signal });
      if (outcome.outcome === 'claimed') return { task: outcome.task, lease: outcome.lease, again: outcome.again };
      if (outcome.outcome === 'none') return { ready: outcome.ready };
      if (outcome.outcome === 'full') return { ready: 0 };
      throw refusal(outcome, who, wanted);
    },
  }),
  defineOperation({
    name: 'work.start',
    summary: 'Say that work on a task began',
    access: 'work',
    input: z.object({ task, agent, ...lease }),
    output: renewed,
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/start' },
    cli: { words: 'start', args: ['task'], view: 'verdict', examples: ['reeve start TASK-001 --agent ann'] },
    run: async ({ rooms }, input) => {
      const said = await rooms.tasks.work.report(leaseOf(input));
      if (said.outcome !== 'noted') throw notYours(said, input.task, input.agent);
      return { task_id: input.task, expires_at: said.expiresAt };
    },
  }),
  defineOperation({
    name: 'work.heartbeat',
    summary: 'Say that you are still at it',
    access: 'work',
    input: z.object({ task, agent, ...lease }),
    output: renewed,
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/heartbeat' },
    cli: { words: 'beat', args: ['task'], view: 'verdict', examples: ['reeve beat TASK-001 --agent ann'] },
    run: async ({ rooms }, input) => {
      const said = await rooms.tasks.work.heartbeat(leaseOf(input));
      if (said.outcome !== 'noted') throw notYours(said, input.task, input.agent);
      return { task_id: input.task, expires_at: said.expiresAt };
    },
  }),
  defineOperation({
    name: 'work.note',
    summary: 'Say how far you are; renews the lease',
    access: 'work',
    input: z.object({
      task,
      note: z.string().min(1).max(10_000).describe('In words'),
      agent,
      percent: z.number().min(0).max(100).optional().describe('How far, 0 to 100'),
      ...lease,
    }),
    output: renewed,
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/note' },
    cli: {
      words: 'note',
      args: ['task', 'note'],
      view: 'verdict',
      examples: ['reeve note TASK-001 tests-written --agent ann --percent 60'],
    },
    mcp: {
      tool: 'report_progress',
      description: 'Say how far you are with your task. Renews your lease; an error means that you lost it: stop then.',
      readOnly: false,
      idempotent: true,
    },
    run: async ({ rooms }, input) => {
      const { note, percent } = input;
      const said = await rooms.tasks.work.report(leaseOf(input), { note, ...(percent !== undefined && { percent }) });
      if (said.outcome !== 'noted') throw notYours(said, input.task, input.agent);
      return { task_id: input.task, expires_at: said.expiresAt };
    },
  }),
  defineOperation({
    name: 'work.complete',
    summary: 'Finish a task',
    description:
      'A second call about the same lease answers as the first; one that comes too late is kept, not counted.',
    access: 'work',
    input: z.object({
      task,
      agent,
      result: resultSchema.optional().describe('JSON: files_modified, notes, errors, and whatever else'),
      files,
      note: z.string().max(100_000).optional().describe('What was done, in words'),
      ...lease,
    }),
    output: z.object({
      task_id: z.string(),
      completed_at: z.string(),
      unblocked: z.array(z.string()),
      again: z.boolean(),
    }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    journal: { doneIf: [] },
    http: { method: 'POST', path: '/tasks/{task}/complete' },
    cli: {
      words: 'done',
      args: ['task'],
      view: 'verdict',
      examples: ['reeve done TASK-001 --agent ann --files a.ts,b.ts --note done'],
    },
    run: async ({ rooms }, input) => {
      const { result, files: changed, note } = input;
      const told = {
        ...(await withoutLongOutput(rooms, leaseOf(input), result)),
        ...(changed && { files_modified: changed }),
        ...(note && { notes: note }),
      };
      const done = await rooms.tasks.work.complete(leaseOf(input), told);
      if (done.outcome === 'late' || done.outcome === 'unknown') throw notYours(done, input.task, input.agent);
      const unblocked = done.outcome === 'completed' ? done.released : [];
      return { task_id: input.task, completed_at: done.at, unblocked, again: done.outcome === 'already' };
    },
  }),
  defineOperation({
    name: 'work.fail',
    summary: 'Say that a task failed',
    description:
      'Only the classes "task" and "timeout" use up an attempt. "quota" pauses the type of the agent, until `until` if given; "auth" and "infra" are tried again after a pause.',
    access: 'work',
    input: z.object({
      task,
      agent,
      error: z.string().min(1).max(20_000).describe('What went wrong'),
      class: z.enum(FAILURE_CLASSES).default('task').describe('Whose fault it was'),
      until: z.iso.datetime({ offset: true }).optional().describe('With quota: when the limit resets'),
      final: z.boolean().default(false).describe('Do not try again'),
      result: resultSchema.optional().describe('What there is to show all the same'),
      ...lease,
    }),
    output: z.object({
      task_id: z.string(),
      outcome: z.enum(['retry', 'failed', 'already']),
      attempts: z.int().optional(),
      retry_in_seconds: z.number().optional(),
    }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    journal: { doneIf: [] },
    http: { method: 'POST', path: '/tasks/{task}/fail' },
    cli: {
      words: 'fail',
      args: ['task'],
      view: 'verdict',
      examples: [
        'reeve fail TASK-001 --agent ann --error no-table',
        'reeve fail TASK-001 --agent ann --error limit --class quota',
      ],
    },
    run: async ({ rooms }, input) => {
      const card = await rooms.roster.show(input.agent);
      const failed = await rooms.tasks.work.fail(leaseOf(input), {
        class: input.class,
        error: input.error,
        isFinal: input.final,
        result: await withoutLongOutput(rooms, leaseOf(input), input.result),
        pauseType: card?.agent_type,
        pauseUntil: input.until ? Math.ceil(Date.parse(input.until) / 1000) : 0,
      });
      if (failed.outcome === 'late' || failed.outcome === 'unknown') throw notYours(failed, input.task, input.agent);
      return {
        task_id: input.task,
        outcome: failed.outcome,
        ...(failed.outcome !== 'already' && { attempts: failed.attempts }),
        ...(failed.outcome === 'retry' && { retry_in_seconds: failed.inMs / 1000 }),
      };
    },
  }),
  defineOperation({
    name: 'work.drop',
    summary: 'Give a task back unfinished',
    access: 'work',
    input: z.object({ task, agent, reason: z.string().max(2_000).default('given back').describe('Why'), ...lease }),
    output: z.object({ task_id: z.string(), position: z.int().describe('Its place in the queue; 0: it is not ready') }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    http: { method: 'POST', path: '/tasks/{task}/drop' },
    cli: { words: 'drop', args: ['task'], view: 'verdict', examples: ['reeve drop TASK-001 --agent ann'] },
    run: async ({ rooms }, input) => {
      const dropped = await rooms.tasks.work.drop(leaseOf(input), input.reason);
      if (dropped.outcome !== 'dropped') throw notYours(dropped, input.task, input.agent);
      return { task_id: input.task, position: dropped.position };
    },
  }),
  defineOperation({
    name: 'work.finish',
    summary: 'End your work on a task, in whatever way',
    access: 'work',
    input: z.object({
      task,
      agent,
      outcome: z.enum(['completed', 'failed', 'released']).describe('How it ended'),
      summary: z.string().max(100_000).default('').describe('What was done, in words'),
      files_modified: files,
      error: z.string().max(20_000).optional().describe('If it failed: what went wrong'),
      retryable: z.boolean().default(true).describe('If it failed: whether to try again'),
      ...lease,
    }),
    output: z.object({ task_id: z.string(), station: z.string(), unblocked: z.array(z.string()) }),
    errors: ['LEASE_LOST', 'TASK_UNKNOWN'],
    journal: { doneIf: [] },
    http: { method: 'POST', path: '/tasks/{task}/finish' },
    cli: {
      words: 'finish',
      args: ['task'],
      view: 'verdict',
      examples: ['reeve finish TASK-001 --agent ann --outcome completed'],
    },
    mcp: {
      tool: 'finish_task',
      description:
        'End your task: completed (with a summary and the files you changed), failed (with the error) or released (somebody else should do it). Returns what your work unblocked.',
      readOnly: false,
      idempotent: true,
    },
    run: async ({ rooms }, input) => {
      const { work } = rooms.tasks;
      const named = leaseOf(input);
      const { outcome, summary, error, retryable, files_modified = [] } = input;
      const ended =
        outcome === 'completed'
          ? await work.complete(named, { notes: summary, files_modified })
          : outcome === 'failed'
            ? await work.fail(named, { error: error ?? (summary || 'it failed'), isFinal: !retryable })
            : await work.drop(named, summary || 'given back');
      if (ended.outcome === 'late' || ended.outcome === 'unknown') throw notYours(ended, input.task, input.agent);
      const standing = await rooms.tasks.standings([input.task]);
      const unblocked = ended.outcome === 'completed' ? ended.released : [];
      return { task_id: input.task, station: standing.get(input.task)?.station ?? 'done', unblocked };
    },
  }),
];
