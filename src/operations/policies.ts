import { z } from 'zod';
import { REVIEWER_POLICY } from '../reviewer-policy.ts';
import { defineOperation, type Operation } from './operation.ts';

const policyShape = z
  .object({
    ...REVIEWER_POLICY.shape,
    version: z.int(),
    source: z.enum(['file', 'store']).describe('A policy of the file can only be changed there'),
  })
  .meta({ id: 'ReviewerPolicy' });
const name = REVIEWER_POLICY.shape.policy_id.describe('Which policy');
const { policy_id: _, ...rules } = REVIEWER_POLICY.shape;

/** Who must agree to what. */
export const policyOperations: readonly Operation[] = [
  defineOperation({
    name: 'policy.list',
    summary: 'List the policies that are in force',
    access: 'read',
    input: z.object({}),
    output: z.object({ items: z.array(policyShape) }),
    errors: [],
    http: { method: 'GET', path: '/policies' },
    cli: {
      words: 'policy list',
      columns: ['policy_id', 'version', 'source', 'min_approvers', 'required_roles', 'resource_patterns', 'task_types'],
      examples: ['reeve policy list'],
    },
    run: async ({ rooms }) => ({ items: [...(await rooms.policies.inForce())] }),
  }),
  defineOperation({
    name: 'policy.show',
    summary: 'Show a policy and what it was before',
    access: 'read',
    input: z.object({ policy: name }),
    output: z.object({
      ...policyShape.shape,
      history: z.array(
        z.object({ version: z.int(), active: z.boolean(), created_at: z.string(), created_by: z.string() }),
      ),
    }),
    errors: ['POLICY_UNKNOWN'],
    http: { method: 'GET', path: '/policies/{policy}' },
    cli: { words: 'policy show', args: ['policy'], examples: ['reeve policy show prod-db'] },
    run: async ({ rooms }, { policy }) => {
      const found = await rooms.policies.find(policy);
      const history = (await rooms.policies.history(policy)).map(({ policy: _policy, ...version }) => version);
      return { ...found, history };
    },
  }),
  defineOperation({
    name: 'policy.set',
    summary: 'Add a policy, or a new version of one',
    description: 'It counts from now on; what is under review goes on as it was asked for.',
    access: 'admin',
    input: z.object({ policy: name, ...rules }),
    output: policyShape,
    errors: ['POLICY_OF_FILE', 'POLICY_CHANGED'],
    http: { method: 'PUT', path: '/policies/{policy}' },
    cli: {
      words: 'policy set',
      args: ['policy'],
      examples: [
        'reeve policy set prod-db --resource-patterns "database:prod-*" --min-approvers 2',
        `reeve policy set low-risk --auto-approve-if '{"risk_below": 30}'`,
      ],
    },
    run: async ({ rooms, caller }, { policy, ...given }) =>
      rooms.policies.set(REVIEWER_POLICY.parse({ policy_id: policy, ...given }), caller.id),
  }),
  defineOperation({
    name: 'policy.remove',
    summary: 'Take a policy out of force',
    access: 'admin',
    input: z.object({ policy: name }),
    output: z.object({ policy_id: z.string() }),
    errors: ['POLICY_UNKNOWN', 'POLICY_OF_FILE', 'POLICY_CHANGED'],
    http: { method: 'DELETE', path: '/policies/{policy}' },
    cli: { words: 'policy remove', args: ['policy'], view: 'verdict', examples: ['reeve policy remove prod-db'] },
    run: async ({ rooms, caller }, { policy }) => {
      await rooms.policies.remove(policy, caller.id);
      return { policy_id: policy };
    },
  }),
  defineOperation({
    name: 'policy.simulate',
    summary: 'Say what a policy would have meant for the tasks of the past',
    description:
      'The newest tasks are ruled upon twice, with the policies in force and with this one added or changed.',
    access: 'read',
    input: z.object({
      policy: name,
      ...rules,
      remove: z.boolean().default(false).describe('As if it were taken out of force'),
      limit: z.int().min(1).max(1_000).default(200).describe('How many tasks'),
    }),
    output: z.object({
      looked_at: z.int(),
      changed: z.int(),
      items: z.array(
        z.object({ task_id: z.string(), risk: z.number(), before: z.string(), after: z.string(), because: z.string() }),
      ),
    }),
    errors: [],
    http: { method: 'POST', path: '/policies/simulate' },
    cli: {
      words: 'policy simulate',
      args: ['policy'],
      columns: ['task_id', 'risk', 'before', 'after', 'because'],
      examples: ['reeve policy simulate prod-db --resource-patterns "database:*" --min-approvers 2'],
    },
    run: async ({ rooms }, { policy, remove, limit, ...given }) => {
      const others = (await rooms.policies.inForce()).filter(({ policy_id }) => policy_id !== policy);
      const changed = {
        ...REVIEWER_POLICY.parse({ policy_id: policy, ...given }),
        version: 0,
        source: 'store' as const,
      };
      return rooms.approvals.replay(remove ? others : [...others, changed], limit);
    },
  }),
];
