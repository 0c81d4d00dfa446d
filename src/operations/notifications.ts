import { z } from 'zod';
import { deliveryShape, deliveryStates } from './delivery-shape.ts';
import { defineOperation, type Operation } from './operation.ts';

const item = deliveryShape.extend({ route: z.string() }).meta({ id: 'Notification' });
const route = z.string().min(1).max(64).describe('Which route of the configuration');

/** How people are told what concerns them. */
export const notificationOperations: readonly Operation[] = [
  defineOperation({
    name: 'notification.routes',
    summary: 'List by which ways who is told of what',
    description: 'They are set in the configuration, under notifications.routes. Addresses and secrets are not shown.',
    access: 'operate',
    input: z.object({}),
    output: z.object({
      items: z.array(
        z.object({
          name: z.string(),
          kind: z.enum(['slack', 'webhook']),
          host: z.string(),
          signed: z.boolean(),
          users: z.array(z.string()),
          roles: z.array(z.string()),
          on_call: z.boolean(),
          events: z.array(z.string()),
        }),
      ),
    }),
    errors: [],
    http: { method: 'GET', path: '/notifications/routes' },
    cli: {
      words: 'notification routes',
      columns: ['name', 'kind', 'host', 'users', 'roles', 'on_call', 'events'],
      examples: ['reeve notification routes'],
    },
    run: async ({ rooms }) => ({ items: rooms.notifications.list() }),
  }),
  defineOperation({
    name: 'notification.test',
    summary: 'Send a message that means nothing by a route',
    access: 'operate',
    input: z.object({ route }),
    output: z.object({ delivery_id: z.string() }),
    errors: ['ROUTE_UNKNOWN'],
    http: {
      method: 'POST',
      path: '/notifications/routes/{route}/test',
      answers: { 202: 'On its way' },
      status: () => 202,
    },
    cli: { words: 'notification test', args: ['route'], view: 'verdict', examples: ['reeve notification test ops'] },
    run: async ({ rooms }, { route: name }) => ({ delivery_id: await rooms.notifications.test(name) }),
  }),
  defineOperation({
    name: 'notification.deliveries',
    summary: 'Show what people were told, what waits, and what was given up',
    access: 'operate',
    input: z.object({
      route: route.optional().describe('Only by this route'),
      state: z.enum(deliveryStates).optional().describe('Only these; dead is what was given up'),
      limit: z.int().min(1).max(1_000).default(50).describe('How many, the newest first'),
    }),
    output: z.object({ items: z.array(item) }),
    errors: [],
    http: { method: 'GET', path: '/notifications/deliveries' },
    cli: {
      words: 'notification deliveries',
      columns: ['delivery_id', 'route', 'event', 'state', 'attempts', 'last_answer', 'next_at', 'created_at'],
      examples: ['reeve notification deliveries', 'reeve notification deliveries --state dead'],
    },
    run: async ({ rooms }, { route: name = '*', state, limit }) => {
      const found = await rooms.deliveries.list({ lanes: `route:${name}`, state, limit });
      return { items: found.map(({ lane, ...one }) => ({ ...one, route: lane.slice('route:'.length) })) };
    },
  }),
  defineOperation({
    name: 'notification.redeliver',
    summary: 'Tell people something once more',
    access: 'operate',
    input: z.object({ delivery: z.string().min(1).max(100).describe('Which delivery') }),
    output: deliveryShape,
    errors: ['DELIVERY_UNKNOWN'],
    http: {
      method: 'POST',
      path: '/notifications/deliveries/{delivery}/redeliver',
      answers: { 202: 'On its way' },
      status: () => 202,
    },
    cli: { words: 'notification redeliver', args: ['delivery'], examples: ['reeve notification redeliver dlv_1'] },
    run: ({ rooms }, { delivery }) => rooms.deliveries.redeliver(delivery, 'route'),
  }),
];
