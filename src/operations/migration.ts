import { z } from 'zod';
import { defineOperation, type Operation } from './operation.ts';

export const migrationOperations: readonly Operation[] = [
  defineOperation({
    name: 'migrate.ade',
    summary: 'Bring data of the first version of the approval system into the form of this one',
    description:
      'Takes over locks under `lock:*` for the time they have left, capacities, and approval statuses that are numbers. Without `apply` it changes nothing and says what it would do. What it cannot read it leaves as it is. It may be run again at any time.',
    access: 'admin',
    input: z.object({ apply: z.boolean().default(false).describe('Do it; default: only say what would be done') }),
    output: z.object({
      applied: z.boolean(),
      items: z.array(
        z.object({
          key: z.string(),
          outcome: z.enum(['move', 'drop', 'leave']),
          to: z.string().optional(),
          why: z.string().optional(),
        }),
      ),
    }),
    errors: [],
    http: { method: 'POST', path: '/migrate/ade-v1' },
    cli: {
      words: 'migrate ade-v1',
      columns: ['outcome', 'key', 'to', 'why'],
      examples: ['reeve migrate ade-v1', 'reeve migrate ade-v1 --apply'],
    },
    run: async ({ rooms }, { apply }) => ({ applied: apply, items: await rooms.migrateAdeV1(apply) }),
  }),
];
