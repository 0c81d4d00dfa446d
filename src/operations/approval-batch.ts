import { z } from 'zod';
import type { Answer } from '../approvals/answers.ts';
import { approvalIdSchema } from '../approvals/request.ts';
import { ReeveError } from '../errors.ts';
import { type Context, defineOperation } from './operation.ts';

const options = z
  .strictObject({
    skip_validation: z.boolean().default(false).describe('Do not assess each task anew'),
    apply_immediately: z.boolean().default(false).describe('Hand out what passes before all else'),
  })
  .describe('For admins, and for tasks whose risk is below the threshold; audited for each');

const input = z.object({
  approval_ids: z
    .array(approvalIdSchema)
    .min(1)
    .max(1_000)
    .refine((ids) => new Set(ids).size === ids.length, 'names one of them twice')
    .describe('Which requests'),
  action: z.enum(['approve', 'reject']).default('approve').describe('What to say to all of them'),
  reason: z.string().max(10_000).default('').describe('Why'),
  options: options.prefault({}),
  dry: z.boolean().default(false).describe('Only say what would stand against each'),
});

export const approvalBatch = defineOperation({
  name: 'approval.batch',
  summary: 'Answer several requests at once: all of them, or none',
  description:
    'Each task is assessed anew: one whose risk has risen since it was asked is refused, and with it all. What is critical is answered by itself.',
  access: 'decide',
  limit: 'approvals:respond',
  input,
  output: z.object({
    done: z.boolean(),
    items: z.array(
      z.object({
        approval_id: z.string(),
        outcome: z.string(),
        code: z.string().optional(),
        why: z.string().optional(),
      }),
    ),
  }),
  errors: ['BATCH_REFUSED', 'FEATURE_OFF'],
  http: { method: 'POST', path: '/approvals/batch' },
  cli: {
    words: 'approval batch',
    args: ['approval_ids'],
    columns: ['approval_id', 'outcome', 'why'],
    examples: [
      'reeve approval batch T-1.1,T-2.1 --dry',
      'reeve approval batch T-1.1,T-2.1 --action approve',
      'reeve approval batch T-1.1,T-2.1 --options apply_immediately=true',
    ],
  },
  run: answerAll,
});

async function answerAll(context: Context, given: z.output<typeof input>) {
  const { rooms, caller } = context;
  const { approval_ids, action, reason, dry } = given;
  await refuseUnlessAllowed(context, given);
  const answers = approval_ids.map((id): Answer => ({ approval: id, action, reason }));
  const outcomes = await rooms.approvals.answerAll(caller.id, answers, {
    isDry: dry,
    skipValidation: given.options.skip_validation,
    applyImmediately: given.options.apply_immediately,
  });
  const items = outcomes.map((one) =>
    'error' in one
      ? { approval_id: one.approval, outcome: 'refused', code: one.error.code, why: one.error.message }
      : { approval_id: one.approval, outcome: dry ? 'fine' : one.state },
  );
  const bad = outcomes.filter((one) => 'error' in one);
  if (bad.length > 0 && !dry) {
    const why = bad.map(({ approval: id, error }) => `${id}: ${error.message}`).join(' ');
    throw new ReeveError('BATCH_REFUSED', { count: outcomes.length, bad: bad.length, why, items });
  }
  return { done: !dry && bad.length === 0, items };
}

async function refuseUnlessAllowed({ rooms, caller }: Context, { options: wishes, action }: z.output<typeof input>) {
  if (!(await rooms.live.isEnabled('batch_approvals'))) {
    throw new ReeveError('FEATURE_OFF', { feature: 'batch_approvals' });
  }
  const names = Object.entries(wishes).flatMap(([name, isWanted]) => (isWanted ? [name] : []));
  if (names.length > 0 && !caller.access.has('admin')) {
    throw new ReeveError('DENIED', { caller: caller.id, why: `only an admin can ask for ${names.join(' and ')}` });
  }
  if (wishes.apply_immediately && action !== 'approve') {
    const problem = 'options.apply_immediately: what is rejected is not applied';
    throw new ReeveError('INVALID_INPUT', { operation: 'approval.batch', command: 'approval batch', problem });
  }
}
