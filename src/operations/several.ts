import { z } from 'zod';
import { agentSchema, LEASE_CLASS_NAMES, lockIdSchema } from '../coordinator/locks/lock.ts';
import type { CompleteOutcome } from '../coordinator/tasks/lease.ts';
import { resultSchema } from '../coordinator/tasks/result.ts';
import { agentTypeSchema, taskIdSchema } from '../coordinator/tasks/task.ts';
import { defineOperation, type Operation } from './operation.ts';
import { leaseShape, refusal, taskShape } from './task-answers.ts';

const MOST = 100;
const agent = agentSchema.describe('Who speaks');
const ended = z
  .object({
    task_id: z.string(),
    outcome: z.enum(['completed', 'already', 'late', 'unknown']).describe('late: kept, not counted'),
    completed_at: z.string().optional(),
    unblocked: z.array(z.string()),
    holder: z.string().optional().describe('With late: who has it now'),
  })
  .meta({ id: 'EndedTask' });

/** The same as one by one, in fewer steps. Each task is taken or ended as a whole or not at all; the others do not suffer from it. */
export const severalOperations: readonly Operation[] = [
  defineOperation({
    name: 'work.claim_several',
    summary: 'Claim several tasks in one call',
    description:
      'Up to `count` tasks, each with its own lease. Fewer if there are not so many, or if the agent has no place for more; 204 if there are none. An agent that nobody registered may hold as many as it asks for first.',
    access: 'work',
    input: z.object({
      agent: agent.describe('Who asks'),
      count: z.int().min(1).max(MOST).describe('How many at most'),
      type: agentTypeSchema.optional().describe('What kind of agent; default: as registered, or general-purpose'),
      capabilities: z.array(z.string()).optional().describe('What it can do; default: as registered'),
      lease_class: z.enum(LEASE_CLASS_NAMES).default('agent').describe('process beats by itself every 10 s'),
    }),
    output: z.object({
      claimed: z.array(z.object({ task: taskShape, lease: leaseShape, again: z.boolean() })),
    }),
    errors: ['WORK_PAUSED', 'AGENT_CLOSED'],
    http: {
      method: 'POST',
      path: '/agents/{agent}/claims',
      answers: { 200: 'Tasks', 204: 'Nothing to do' },
      status: ({ claimed }) => (claimed.length > 0 ? 200 : 204),
    },
    cli: {
      words: 'batch claim',
      view: 'claims',
      exits: [7],
      examples: ['reeve batch claim --agent ann --count 10 --json'],
    },
    run: async ({ rooms }, { agent: who, count, type, capabilities, lease_class }) => {
      const card = await rooms.roster.show(who);
      const request = {
        agent: who,
        type: type ?? card?.agent_type,
        capabilities: capabilities ?? card?.capabilities,
        leaseClass: lease_class,
        places: card?.max_tasks ?? count,
      };
      const { claimed, rest } = await rooms.tasks.work.claimSeveral(request, count);
      const isRefused = rest && rest.outcome !== 'none' && rest.outcome !== 'full' && rest.outcome !== 'claimed';
      if (claimed.length === 0 && isRefused) throw refusal(rest, who, undefined);
      return { claimed: claimed.map(({ task, lease, again }) => ({ task, lease, again })) };
    },
  }),
  defineOperation({
    name: 'work.complete_several',
    summary: 'Finish several tasks in one call',
    description:
      'Answers for each task, in the order given, what became of it. One that comes too late is kept, not counted.',
    access: 'work',
    input: z.object({
      tasks: z.array(taskIdSchema).min(1).max(MOST).describe('Which tasks'),
      agent,
      lock_ids: z.array(lockIdSchema).max(MOST).optional().describe('Their leases, in the same order'),
      results: z.array(resultSchema).max(MOST).optional().describe('JSON list of their results, in the same order'),
      note: z.string().max(100_000).optional().describe('What was done, in words, for those without a result'),
    }),
    output: z.object({ ended: z.array(ended) }),
    errors: [],
    http: { method: 'POST', path: '/agents/{agent}/completions' },
    cli: {
      words: 'batch done',
      args: ['tasks'],
      view: 'ended',
      examples: ['reeve batch done TASK-001,TASK-002 --agent ann'],
    },
    run: async ({ rooms }, { tasks, agent: who, lock_ids: lockIds, results, note }) => {
      const ends = tasks.map((task, at) => ({
        lease: { task, agent: who, lockId: lockIds?.[at] },
        result: results?.[at] ?? (note ? { notes: note } : undefined),
      }));
      const outcomes = await rooms.tasks.work.completeSeveral(ends);
      return { ended: outcomes.map((outcome, at) => endedAs(tasks[at] as string, outcome)) };
    },
  }),
];

const endedAs = (task_id: string, one: CompleteOutcome): z.input<typeof ended> => ({
  task_id,
  outcome: one.outcome,
  ...('at' in one && { completed_at: one.at }),
  unblocked: one.outcome === 'completed' ? [...one.released] : [],
  ...(one.outcome === 'late' && one.holder && { holder: one.holder }),
});
