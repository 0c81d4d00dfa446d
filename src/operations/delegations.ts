import { z } from 'zod';
import { conditionsSchema, DELEGATION_KINDS } from '../approvals/delegation.ts';
import { delegationIdSchema, reviewerSchema } from '../approvals/request.ts';
import { ReeveError } from '../errors.ts';
import { defineOperation, type Operation } from './operation.ts';

const delegationShape = z
  .object({
    policy_id: z.string(),
    kind: z.enum(DELEGATION_KINDS),
    owner_id: z.string(),
    delegate_to: z.string(),
    conditions: conditionsSchema,
    cascade: z.boolean(),
    active: z.boolean(),
    created_at: z.string(),
    expires_at: z.string().optional(),
  })
  .meta({ id: 'Delegation' });
const owner = reviewerSchema.optional().describe('In whose place; default: your own. For others only an admin can');

/** Who answers in whose place, and who goes along with whom. */
export const delegationOperations: readonly Operation[] = [
  defineOperation({
    name: 'delegation.list',
    summary: 'List who answers in whose place, or goes along with whom',
    access: 'read',
    input: z.object({ owner: reviewerSchema.optional().describe('Only those of this person') }),
    output: z.object({ items: z.array(delegationShape) }),
    errors: [],
    http: { method: 'GET', path: '/delegations' },
    cli: {
      words: 'delegation list',
      columns: ['owner_id', 'policy_id', 'kind', 'delegate_to', 'conditions', 'cascade', 'expires_at'],
      examples: ['reeve delegation list'],
    },
    run: async ({ rooms }, { owner: of }) => ({ items: await rooms.delegations.all(of) }),
  }),
  defineOperation({
    name: 'delegation.set',
    summary: 'Let somebody answer in your place, or go along with what somebody approves',
    access: 'decide',
    input: z.object({
      delegation: delegationIdSchema.describe('What to call it'),
      owner,
      delegate_to: reviewerSchema.describe('Who answers, or whom to follow'),
      kind: z
        .enum(DELEGATION_KINDS)
        .default('instead')
        .describe(
          'instead: that person answers in your place. follow: once that person approves, your own question ends as approved; it never counts for the quorum',
        ),
      conditions: conditionsSchema.default({}),
      cascade: z.boolean().default(true).describe('Whether the delegations of that person are followed (instead only)'),
      expires_at: z.iso.datetime({ offset: true }).optional().describe('Until when'),
    }),
    output: delegationShape,
    errors: [],
    http: { method: 'PUT', path: '/delegations/{delegation}' },
    cli: {
      words: 'delegation set',
      args: ['delegation', 'delegate_to'],
      examples: [
        `reeve delegation set leave bob --conditions '{"task_types": ["infrastructure"], "risk_above": 50}'`,
        'reeve delegation set trust mona --kind follow',
      ],
    },
    run: async ({ rooms, caller }, { delegation, owner: of = caller.id, delegate_to, ...given }) => {
      if (of !== caller.id && !caller.access.has('admin')) {
        throw new ReeveError('DENIED', { caller: caller.id, why: `only ${of} or an admin can delegate for ${of}` });
      }
      return rooms.delegations.add({ ...given, owner_id: of, policy_id: delegation, delegate_to, by: caller.id });
    },
  }),
  defineOperation({
    name: 'delegation.remove',
    summary: 'Answer in person again',
    access: 'decide',
    input: z.object({ delegation: delegationIdSchema.describe('Which one'), owner }),
    output: z.object({ owner_id: z.string(), policy_id: z.string() }),
    errors: ['DELEGATION_UNKNOWN'],
    http: { method: 'DELETE', path: '/delegations/{delegation}' },
    cli: {
      words: 'delegation remove',
      args: ['delegation'],
      view: 'verdict',
      examples: ['reeve delegation remove leave'],
    },
    run: async ({ rooms, caller }, { delegation, owner: of = caller.id }) => {
      if (of !== caller.id && !caller.access.has('admin')) {
        throw new ReeveError('DENIED', { caller: caller.id, why: `only ${of} or an admin can change it` });
      }
      await rooms.delegations.remove(of, delegation);
      return { owner_id: of, policy_id: delegation };
    },
  }),
];
