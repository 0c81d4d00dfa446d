import { z } from 'zod';

const URL_TEXT = z
  .string()
  .regex(/^https?:\/\/[^\s@]+$/, 'must be an http:// or https:// address without a user in it');

/** One entry of notifications.routes: where to tell whom. Exactly one of slack and url says where. */
export const NOTIFICATION_ROUTE = z
  .strictObject({
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be letters, digits, - and _, at most 64')
      .meta({ description: 'What commands call it; also a name for whoever is on call' }),
    slack: URL_TEXT.optional().meta({
      description: 'An incoming webhook of Slack, or of what understands the same',
      secret: true,
    }),
    url: URL_TEXT.optional().meta({ description: 'Any receiver of JSON', secret: true }),
    secret: z.string().min(1).optional().meta({ description: 'Signs what goes to url', secret: true }),
    users: z.array(z.string().min(1).max(254)).default([]).meta({ description: 'For these people; * is everybody' }),
    roles: z
      .array(z.string().min(1).max(100))
      .default([])
      .meta({ description: 'For everybody with one of these roles or groups' }),
    onCall: z.boolean().default(false).meta({ description: 'For whoever is on call' }),
    events: z
      .array(z.string().min(1).max(100))
      .min(1)
      .default(['*'])
      .meta({ description: 'Only of these events, such as approval:*' }),
  })
  .refine(({ slack, url }) => (slack === undefined) !== (url === undefined), 'must have one of slack and url');
export type NotificationRoute = z.output<typeof NOTIFICATION_ROUTE>;
