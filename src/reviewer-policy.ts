import { z } from 'zod';

const pattern = z.string().min(1).max(300);
const patterns = z.array(pattern).max(100);
const score = z.number().min(0).max(100);

/** Who must agree to which tasks. In reeve.yaml, and through the operations of policies. */
export const REVIEWER_POLICY = z.strictObject({
  policy_id: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be letters, digits, ".", "_" and "-", at most 128')
    .refine((id) => !(id in {}), 'is a word of the language that reeve is written in')
    .describe('Its name'),
  description: z.string().max(2_000).default('').describe('Why it is there'),
  enabled: z.boolean().default(true).describe('Whether it is in force'),
  task_types: patterns.default([]).describe('Types of task it is about (globs); none: all'),
  resource_patterns: patterns
    .default([])
    .describe('Resources it is about (globs): database:prod-*, or prod-* of any type; none: all'),
  min_approvers: z.int().min(1).max(50).default(1).describe('How many different people must agree'),
  required_roles: z
    .array(z.string().min(1).max(100))
    .max(20)
    .default([])
    .describe('Roles of which each must be among them; none: any reviewer or admin will do'),
  risk_threshold: score.default(0).describe('It is about tasks of at least this risk'),
  due_seconds: z
    .int()
    .min(1)
    .max(90 * 24 * 3_600)
    .optional()
    .describe(
      'How long people have to answer before it goes to the next level; of several policies the shortest counts',
    ),
  auto_approve_if: z
    .strictObject({
      risk_below: score.optional().describe('The risk is below this'),
      author_has_role: z.array(z.string().min(1).max(100)).max(20).optional().describe('The author has one of these'),
      resources_in_scope: patterns.optional().describe('Every resource is one of these, and there is one'),
    })
    .optional()
    .describe('Nobody need be asked if all of this holds; without it somebody always is'),
});
export type ReviewerPolicy = DeepReadonly<z.output<typeof REVIEWER_POLICY>>;

/** How much depends on a resource: what a change to it may break. The first row that fits counts. */
export const CRITICALITY_ROW = z.strictObject({
  pattern: pattern.describe('Resources it is about (glob): database:prod-*, or prod-* of any type'),
  criticality: score.describe('0: nobody would notice, 100: everything stands still'),
  used_by: z.array(z.string().min(1).max(300)).max(1_000).default([]).describe('What breaks with it'),
});
export type CriticalityRow = DeepReadonly<z.output<typeof CRITICALITY_ROW>>;

/** Nothing in it may be changed, however deep. */
export type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;
