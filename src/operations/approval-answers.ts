import { z } from 'zod';
import { previewSchema } from '../approvals/preview.ts';
import type { ApprovalRequest } from '../approvals/request.ts';
import { needSchema, requestSchema } from '../approvals/request.ts';
import { RISK_LEVELS } from '../approvals/risk.ts';
import type { Ruling } from '../approvals/ruling.ts';
import { TASK_STATES, URGENCIES } from '../coordinator/tasks/task.ts';
import { ReeveError } from '../errors.ts';
import type { Caller, Context } from './operation.ts';

const state = z.enum(TASK_STATES as [string, ...string[]]);
const policyRef = z.object({ policy_id: z.string(), version: z.int() });

export const riskShape = z
  .object({
    score: z.number(),
    exact: z.number().describe('Before it was cut to a whole number'),
    level: z.enum(RISK_LEVELS),
    factors: z.array(
      z.object({
        name: z.string(),
        value: z.number(),
        weight: z.number(),
        points: z.number(),
        because: z.string(),
      }),
    ),
    assessed_by: z.string().describe('Version of the algorithm'),
  })
  .meta({ id: 'Risk' });

export const rulingShape = z
  .object({
    task_id: z.string(),
    state,
    because: z.string(),
    risk: riskShape,
    policies: z.array(policyRef),
    requests: z.array(z.object({ approval_id: z.string().optional(), reviewer: z.string() })),
    preview: previewSchema,
  })
  .meta({ id: 'Ruling' });

export const rulingAnswer = (ruling: Ruling) => ruling;

export const requestShape = z
  .object({
    approval_id: z.string(),
    task_id: z.string(),
    title: z.string().describe('What the task is called'),
    reviewer_id: z.string(),
    reviewer_name: z.string(),
    status: requestSchema.shape.status,
    priority: z.enum(URGENCIES),
    risk: z.number(),
    delegated_to: z.string().optional(),
    delegation_chain: z.array(z.string()),
    created_at: z.string(),
    due_at: z.string(),
    responded_at: z.string().optional(),
    response_action: z.string().optional(),
    response_reason: z.string().optional(),
    reviewed_by: z.string().optional(),
    follows: z.string().optional().describe('The approval by somebody else that answered it, too; it does not count'),
    config_hash: z.string().describe('What it is about: send it with the answer'),
    config_version: z.number(),
    policies: z.array(policyRef),
    tier: z.number().describe('How often it went to a next level'),
    escalates: z.boolean().describe('Whether it goes to the next level when it is due; false: nobody is left there'),
    reminded_at: z.string().optional(),
    stranded: z.string().optional().describe('Why its reviewer cannot answer, if nobody else can be asked'),
  })
  .meta({ id: 'ApprovalRequest' });

export const requestAnswer = (request: ApprovalRequest, title: string) => ({ ...request, title });

export const tallyShape = z
  .object({
    required_count: z.number(),
    approved_count: z.number(),
    rejected_count: z.number(),
    pending_count: z.number(),
    quorum_reached: z.boolean(),
    because: z.string(),
    needs: z.array(needSchema),
    policies: z.array(policyRef),
  })
  .meta({ id: 'Tally' });

export const decidedShape = z.object({ approval_id: z.string(), task_state: state, again: z.boolean() });

/** Whoever writes for an agent on this machine is that agent, until tokens tell the two apart. */
export const authorOf = (caller: Caller, agent?: string): string =>
  caller.id === 'local' ? (agent ?? caller.id) : caller.id;

/** Whoever may write tasks may change, submit and call off its own; those of others only who runs the place, or a service. */
export async function refuseForeignTask({ rooms, caller }: Context, task: string): Promise<void> {
  if (caller.access.has('operate') || caller.roles?.includes('system')) return;
  const author = await rooms.approvals.authorOf(task);
  if (author === undefined || author === caller.id) return;
  throw new ReeveError('DENIED', { caller: caller.id, why: `${task} is a task of ${author}` });
}
