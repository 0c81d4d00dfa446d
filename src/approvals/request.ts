import { z } from 'zod';
import { URGENCIES } from '../coordinator/tasks/task.ts';
import { idSchema } from '../redis/ids.ts';

export const approvalIdSchema = idSchema('approval');
export const reviewerSchema = idSchema('user');
export const delegationIdSchema = idSchema('policy');

export const REQUEST_STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'DELEGATED', 'EXPIRED', 'SUPERSEDED'] as const;
export const ANSWERS = ['approve', 'reject', 'request_changes'] as const;
export type AnswerAction = (typeof ANSWERS)[number];

const text = z.string();
const list = z
  .string()
  .default('[]')
  .transform((json): unknown => JSON.parse(json));

/** One question to one person, as `ade:approval:request:{id}` has it. */
export const requestSchema = z.object({
  task_id: text,
  reviewer_id: text,
  reviewer_name: text.default(''),
  status: z.enum(REQUEST_STATUSES),
  priority: z.enum(URGENCIES),
  delegated_to: text.optional(),
  delegation_chain: list.pipe(z.array(text)),
  created_at: text,
  due_at: text,
  responded_at: text.optional(),
  response_action: z.enum([...ANSWERS, 'delegate']).optional(),
  response_reason: text.optional(),
  reviewed_by: text.optional(),
  config_hash: text,
  config_version: z.coerce.number(),
  risk: z.coerce.number(),
  by_hand: text.optional(),
  follows: text.optional(),
  tier: z.coerce.number().default(0),
  wake_us: text.default(''),
  span_us: z.coerce.number().default(0),
  escalates: text.default('1').transform((word) => word === '1'),
  reminded_at: text.optional(),
  stranded: text.optional(),
  policies: list.pipe(z.array(z.object({ policy_id: text, version: z.int() }))),
});
export type ApprovalRequest = z.output<typeof requestSchema> & { readonly approval_id: string };

export const needSchema = z.object({
  policy_id: text,
  version: z.int(),
  min: z.int(),
  voters: z.array(text),
  roles: z.array(z.object({ role: text, voters: z.array(text) })),
  by: z.record(text, z.array(text)).default({}),
  stand_ins: z.array(text).default([]),
});

export const needsSchema = z.array(needSchema);

/** How the vote on a task stands. */
export const tallySchema = z.object({
  required_count: z.coerce.number().default(0),
  approved_count: z.coerce.number().default(0),
  rejected_count: z.coerce.number().default(0),
  pending_count: z.coerce.number().default(0),
  quorum_reached: z
    .enum(['true', 'false'])
    .default('false')
    .transform((word) => word === 'true'),
  because: text.default(''),
  needs: list.pipe(z.array(needSchema)),
  policies: list.pipe(z.array(z.object({ policy_id: text, version: z.int() }))),
});
export type Tally = z.output<typeof tallySchema>;
