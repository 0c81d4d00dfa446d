import { z } from 'zod';
import { EVENT_PATTERN } from '../events/pattern.ts';
import { deliveryShape, deliveryStates } from './delivery-shape.ts';
import { defineOperation, type Operation } from './operation.ts';

const webhookShape = z
  .object({
    webhook_id: z.string(),
    target: z.string(),
    events: z.array(z.string()),
    description: z.string(),
    active: z.boolean(),
    created_at: z.string(),
    created_by: z.string(),
    updated_at: z.string(),
    failing_since: z.string().optional().describe('Nothing got through since then'),
    disabled_because: z.string().optional(),
  })
  .meta({ id: 'Webhook' });

const webhook = z.string().min(1).max(100).describe('Which webhook');
const target = z
  .string()
  .max(2_000)
  .regex(/^https?:\/\/[^\s@]+$/, 'must be an http:// or https:// address without a user in it')
  .refine((text) => URL.canParse(text), 'is no address');
const events = z
  .array(
    z.string().max(100).regex(EVENT_PATTERN, 'must be a name of an event, such as task:completed, approval:* or *'),
  )
  .min(1)
  .max(50);
const secret = z.string().min(16).max(200).describe('Signs what is sent. Default: one is made and shown this once');

/** Other programs that are told of events. */
export const webhookOperations: readonly Operation[] = [
  defineOperation({
    name: 'webhook.create',
    summary: 'Have events sent to an address',
    description:
      'Each event is sent as a signed POST, at least once, in order. An address on this machine or in a private network is refused unless webhooks.allowPrivate is set; one on the internet must be https.',
    access: 'admin',
    input: z.object({
      target: target.describe('Where to'),
      events: events.default(['*']).describe('Which events: task:completed, approval:*, *'),
      secret: secret.optional(),
      description: z.string().max(500).default('').describe('What for'),
    }),
    output: webhookShape.extend({ secret: z.string().describe('Shown this once') }),
    errors: [],
    http: { method: 'POST', path: '/webhooks', answers: { 201: 'Made' }, status: () => 201 },
    cli: {
      words: 'webhook create',
      args: ['target'],
      examples: ['reeve webhook create https://ci.example.com/reeve --events task:completed,approval:*'],
    },
    run: ({ rooms, caller }, given) => rooms.webhooks.create(given, caller.id),
  }),
  defineOperation({
    name: 'webhook.list',
    summary: 'List the addresses that events are sent to',
    access: 'admin',
    input: z.object({}),
    output: z.object({ items: z.array(webhookShape) }),
    errors: [],
    http: { method: 'GET', path: '/webhooks' },
    cli: {
      words: 'webhook list',
      columns: ['webhook_id', 'active', 'target', 'events', 'failing_since', 'disabled_because'],
      examples: ['reeve webhook list'],
    },
    run: async ({ rooms }) => ({ items: await rooms.webhooks.list() }),
  }),
  defineOperation({
    name: 'webhook.update',
    summary: 'Change a webhook, switch it off, or on again',
    description: 'Switched on again it is first sent what has waited since.',
    access: 'admin',
    input: z.object({
      webhook,
      target: target.optional().describe('Where to'),
      events: events.optional().describe('Which events'),
      secret: secret.optional().describe('A new secret'),
      description: z.string().max(500).optional().describe('What for'),
      active: z.boolean().optional().describe('Whether it is told anything'),
    }),
    output: webhookShape,
    errors: ['WEBHOOK_UNKNOWN'],
    http: { method: 'PATCH', path: '/webhooks/{webhook}' },
    cli: { words: 'webhook update', args: ['webhook'], examples: ['reeve webhook update wh_1 --active no'] },
    run: ({ rooms }, { webhook: id, ...change }) => rooms.webhooks.update(id, change),
  }),
  defineOperation({
    name: 'webhook.delete',
    summary: 'Take a webhook away, with the log of what it was sent',
    access: 'admin',
    input: z.object({ webhook }),
    output: z.object({ webhook_id: z.string() }),
    errors: ['WEBHOOK_UNKNOWN'],
    http: { method: 'DELETE', path: '/webhooks/{webhook}' },
    cli: { words: 'webhook delete', args: ['webhook'], view: 'verdict', examples: ['reeve webhook delete wh_1'] },
    run: async ({ rooms }, { webhook: id }) => {
      await rooms.webhooks.remove(id);
      return { webhook_id: id };
    },
  }),
  defineOperation({
    name: 'webhook.test',
    summary: 'Send a webhook a message that means nothing',
    description: 'It waits its turn behind what is to be sent already. See what became of it: webhook deliveries.',
    access: 'admin',
    input: z.object({ webhook }),
    output: z.object({ delivery_id: z.string() }),
    errors: ['WEBHOOK_UNKNOWN'],
    http: { method: 'POST', path: '/webhooks/{webhook}/test', answers: { 202: 'On its way' }, status: () => 202 },
    cli: { words: 'webhook test', args: ['webhook'], view: 'verdict', examples: ['reeve webhook test wh_1'] },
    run: async ({ rooms }, { webhook: id }) => ({ delivery_id: await rooms.webhooks.test(id) }),
  }),
  defineOperation({
    name: 'webhook.deliveries',
    summary: 'Show what a webhook was sent, what waits, and what was given up',
    access: 'admin',
    input: z.object({
      webhook,
      state: z.enum(deliveryStates).optional().describe('Only these; dead is what was given up'),
      limit: z.int().min(1).max(1_000).default(50).describe('How many, the newest first'),
    }),
    output: z.object({ items: z.array(deliveryShape) }),
    errors: ['WEBHOOK_UNKNOWN'],
    http: { method: 'GET', path: '/webhooks/{webhook}/deliveries' },
    cli: {
      words: 'webhook deliveries',
      args: ['webhook'],
      columns: ['delivery_id', 'event', 'state', 'attempts', 'last_answer', 'next_at', 'created_at'],
      examples: ['reeve webhook deliveries wh_1 --state dead'],
    },
    run: async ({ rooms }, { webhook: id, state, limit }) => {
      const { webhook_id } = await rooms.webhooks.get(id);
      return { items: await rooms.deliveries.list({ lanes: `webhook:${webhook_id}`, state, limit }) };
    },
  }),
  defineOperation({
    name: 'webhook.redeliver',
    summary: 'Send a webhook something once more',
    description: 'Under the id it had, so that a receiver that has it already can tell.',
    access: 'admin',
    input: z.object({ delivery: z.string().min(1).max(100).describe('Which delivery') }),
    output: deliveryShape,
    errors: ['DELIVERY_UNKNOWN'],
    http: {
      method: 'POST',
      path: '/webhooks/deliveries/{delivery}/redeliver',
      answers: { 202: 'On its way' },
      status: () => 202,
    },
    cli: { words: 'webhook redeliver', args: ['delivery'], examples: ['reeve webhook redeliver dlv_1'] },
    run: ({ rooms }, { delivery }) => rooms.deliveries.redeliver(delivery, 'webhook'),
  }),
];
