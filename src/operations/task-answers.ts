import { z } from 'zod';
import { LEASE_CLASS_NAMES, lockIdSchema } from '../coordinator/locks/lock.ts';
import type { ClaimOutcome, Late, LeaseRef, Unknown } from '../coordinator/tasks/lease.ts';
import type { WorkResult } from '../coordinator/tasks/result.ts';
import { STATIONS } from '../coordinator/tasks/station.ts';
import { TASK_STATES, taskSchema, WORK_STATUSES } from '../coordinator/tasks/task.ts';
import type { TaskDetail } from '../coordinator/tasks/task-view.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Rooms } from './rooms.ts';

/** Whoever has only its name may leave these out; with them a late word is told from a timely one. */
export const leaseInputs = {
  lock_id: lockIdSchema.optional(),
  fencing_token: z.string().max(32).optional().describe('Of the lease, as the claim gave it'),
};

export const leaseOf = (input: {
  task: string;
  agent: string;
  lock_id?: string | undefined;
  fencing_token?: string | undefined;
}): LeaseRef => ({ task: input.task, agent: input.agent, lockId: input.lock_id, token: input.fencing_token });

export const taskShape = z.looseObject({ ...taskSchema.shape, task_id: z.string() }).meta({ id: 'Task' });

export const leaseShape = z
  .object({
    lock_id: z.string().describe('Names the lease; send it with every word about the task'),
    fencing_token: z.string().describe('Rises with each claim of the task'),
    agent_id: z.string(),
    acquired_at: z.string(),
    expires_at: z.string().describe('Say something before then, or the task goes to somebody else'),
    lease_class: z.enum(LEASE_CLASS_NAMES),
    attempt: z.int(),
  })
  .meta({ id: 'Lease' });

export const rowShape = z
  .object({
    task_id: z.string(),
    title: z.string(),
    station: z.enum([...STATIONS, 'inconsistent']),
    status: z.enum(WORK_STATUSES),
    agent_id: z.string().optional(),
    agent_type: z.string(),
    category: z.string(),
    epic: z.string(),
    priority: z.number(),
    attempts: z.int(),
    because: z.string().optional(),
  })
  .meta({ id: 'TaskRow' });

export const detailShape = z
  .object({
    ...rowShape.shape,
    state: z.enum(TASK_STATES as [string, ...string[]]),
    description: z.string(),
    acceptance_criteria: z.string(),
    tech_stack: z.array(z.string()),
    files_to_modify: z.array(z.string()),
    depends_on: z.array(z.string()),
    waits_for: z.array(z.string()).describe('Dependencies that are still open'),
    releases: z.array(z.string()).describe('Who waits for it'),
    parked_on: z.string().optional(),
    paused_by: z.string().optional().describe('all, a type of agent, or resource:TYPE:ID'),
    delayed_until: z.string().optional(),
    quarantine: z.string().optional(),
    is_to_undo: z.boolean().describe('A person has to roll back its last attempt before it goes on'),
    lock_id: z.string().optional(),
    claimed_at: z.string().optional(),
    percent: z.number().optional(),
    result: z.unknown().optional(),
    late_results: z.array(z.unknown()),
  })
  .meta({ id: 'TaskDetail' });

export const countsShape = z.object({
  total: z.int(),
  pending: z.int(),
  in_progress: z.int(),
  completed: z.int(),
  failed: z.int(),
  blocked: z.int(),
});

export const boardShape = z
  .object({
    counts: countsShape,
    forecast: z
      .object({
        rate_per_hour: z.number().describe('Completions an hour, lately'),
        p50_seconds: z.number().describe('The rest is as likely done sooner as later than in so long'),
        p85_seconds: z.number().describe('A safer guess'),
      })
      .optional()
      .describe('Absent: not enough history, or nothing left to do'),
    agents: z.array(
      z.object({
        agent_id: z.string(),
        agent_type: z.string(),
        status: z.string(),
        tasks: z.array(z.string()),
        working_since: z.string().optional(),
        note: z.string().optional(),
        percent: z.number().optional(),
      }),
    ),
    errors: z.array(z.string()).describe('The newest, newest first'),
    pauses: z.array(z.object({ what: z.string(), reason: z.string(), until: z.string().optional() })),
    unserved: z
      .array(z.object({ task_id: z.string(), wants: z.string() }))
      .describe('Ready, but no living agent can take them'),
  })
  .meta({ id: 'Board' });

export function detailAnswer({ task, ...rest }: TaskDetail) {
  const { description, acceptance_criteria, tech_stack, files_to_modify } = task;
  return { ...rest, description, acceptance_criteria, tech_stack, files_to_modify };
}

/** What a refusal to hand out work means for the one who asked. */
export function refusal(
  outcome: Exclude<ClaimOutcome, { outcome: 'claimed' | 'none' | 'full' }>,
  agent: string,
  task = '',
) {
  switch (outcome.outcome) {
    case 'refused':
      return new ReeveError('AGENT_CLOSED', { agent, status: outcome.status });
    case 'paused': {
      const { ends = 0, reason = 'a person paused it' } = outcome.pause;
      const until = ends > 0 ? ` until ${new Date(ends * 1000).toISOString()}` : '';
      return new ReeveError('WORK_PAUSED', { agent, reason: reason || 'a person paused it', until });
    }
    case 'busy':
      return new ReeveError('TASK_BUSY', { task, agent, why: busyWhy(outcome.why, outcome.holder) });
    case 'unknown':
      return new ReeveError('TASK_UNKNOWN', { task });
  }
}

function busyWhy(why: string, holder: string): string {
  switch (why) {
    case 'assigned':
    case 'in_progress':
      return `${holder} works on it`;
    case 'reserved':
      return `it is part of what ${holder} works on, who gets it first`;
    case 'collision':
      return `it would collide with ${holder}, which is being worked on`;
    case 'lock':
      return `somebody holds ${holder.replace(/^ade:lock:/, '')}`;
    case 'blocked':
      return 'it waits for other tasks, a pause or a person';
    default:
      return `it is ${why}`;
  }
}

/** The lease is over, or there never was such a task. */
export function notYours(outcome: Late | Unknown, task: string, agent: string): ReeveError {
  if (outcome.outcome === 'unknown') return new ReeveError('TASK_UNKNOWN', { task });
  const { status, holder } = outcome;
  return new ReeveError('LEASE_LOST', { task, agent, status, holder: holder ? ` (${holder})` : '' });
}

/**
 * The output that comes with a result is kept where outputs are; what is long of it is not kept twice. One that was handed in
 * before is the better one. That it could not be kept does not undo the work: the result says so.
 */
export async function withoutLongOutput(
  rooms: Rooms,
  lease: LeaseRef,
  result: WorkResult | undefined,
): Promise<WorkResult | undefined> {
  if (typeof result?.output !== 'string' || result.output === '') return result;
  try {
    const kept = await rooms.executions.output(lease, Buffer.from(result.output), { isWeak: true });
    if (kept.outcome !== 'kept' || kept.key === undefined) return result;
    return { ...result, output: `kept elsewhere: reeve task output ${lease.task}`, output_key: kept.key };
  } catch (error) {
    return { ...result, errors: [...result.errors, `its output was not kept: ${reason(error)}`] };
  }
}
