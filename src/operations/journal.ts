import { z } from 'zod';
import { defineOperation, type Operation } from './operation.ts';

const states = ['waiting', 'done', 'parked'] as const;

/** What was asked for while Redis was away. */
export const journalOperations: readonly Operation[] = [
  defineOperation({
    name: 'journal.list',
    summary: 'Show what was asked for while Redis was away, and what became of it',
    description:
      'New tasks and results are noted then, answered with 202 and a journal_id, and done in order when Redis is back. What is refused then is parked, with the reason.',
    access: 'operate',
    input: z.object({
      state: z.enum(states).optional().describe('Only these'),
      limit: z.int().min(1).max(1_000).default(50).describe('How many, the newest first'),
    }),
    output: z.object({
      items: z.array(
        z.object({
          journal_id: z.string(),
          operation: z.string(),
          state: z.enum(states),
          created_at: z.string(),
          ended_at: z.string().optional(),
          outcome: z.string().optional(),
        }),
      ),
      waiting: z.int(),
    }),
    errors: [],
    http: { method: 'GET', path: '/journal' },
    cli: {
      words: 'journal',
      columns: ['journal_id', 'operation', 'state', 'created_at', 'outcome'],
      examples: ['reeve journal', 'reeve journal --state parked'],
    },
    run: async ({ rooms }, { state, limit }) => ({
      items: await rooms.journal.list(limit, state),
      waiting: (await rooms.journal.counts()).waiting,
    }),
  }),
];
