import { z } from 'zod';
import { defineOperation, type Operation } from './operation.ts';

const days = z.int().min(1).max(3_660).default(30).describe('The last so many days (UTC), today included');
const spread = z
  .object({
    count: z.int(),
    p50_seconds: z.number().optional(),
    p85_seconds: z.number().optional(),
    p95_seconds: z.number().optional(),
  })
  .meta({ id: 'Spread' });

/** What the events add up to. */
export const analyticsOperations: readonly Operation[] = [
  defineOperation({
    name: 'stats.show',
    summary: 'Show how much happened, and how long things take',
    access: 'read',
    input: z.object({ days }),
    output: z.object({
      from: z.string(),
      to: z.string(),
      events: z.record(z.string(), z.int()).describe('How often what happened'),
      lead_time: spread.describe('From the making of a task to its completion'),
      work_time: spread.describe('From its first claim to its completion'),
      approval_time: spread.describe('From asking a reviewer to the answer'),
    }),
    errors: [],
    http: { method: 'GET', path: '/analytics/summary' },
    cli: { words: 'stats', examples: ['reeve stats', 'reeve stats --days 7 --json'] },
    run: ({ rooms }, { days: count }) => rooms.analytics.summary(count),
  }),
  defineOperation({
    name: 'stats.burnup',
    summary: 'Show day by day what there is to do and what of it is done',
    access: 'read',
    input: z.object({ days }),
    output: z.object({
      items: z.array(
        z.object({
          day: z.string(),
          created: z.int(),
          completed: z.int(),
          dropped: z.int().describe('Called off or refused'),
          scope: z.int().describe('All there is to do, at the end of the day'),
          done: z.int().describe('What of it is done'),
        }),
      ),
    }),
    errors: [],
    http: { method: 'GET', path: '/analytics/burnup' },
    cli: {
      words: 'burnup',
      columns: ['day', 'created', 'completed', 'dropped', 'scope', 'done'],
      examples: ['reeve burnup --days 14'],
    },
    run: async ({ rooms }, { days: count }) => ({ items: await rooms.analytics.burnup(count) }),
  }),
];
