import { z } from 'zod';
import { entrySchema } from '../audit/entry.ts';
import { defineOperation, type Operation } from './operation.ts';

const item = entrySchema
  .extend({ seq: z.int(), source_id: z.string(), hash: z.string().describe('Over the hash before it and this record') })
  .meta({ id: 'AuditRow' });
const head = z.object({ seq: z.int(), hash: z.string() });
const MOST = 1_000;

/** The trail that nobody can quietly edit. */
export const auditOperations: readonly Operation[] = [
  defineOperation({
    name: 'audit.list',
    summary: 'Show who did what, when, from where and why',
    description: 'The newest rows, oldest of them first; with `after` the rows that follow, to page or to copy.',
    access: 'audit',
    input: z.object({
      task: z.string().max(256).optional().describe('Only of this task'),
      user: z.string().max(256).optional().describe('Only by this user or agent'),
      action: z.string().max(64).optional().describe('Only this, such as claim'),
      subject: z.string().max(300).optional().describe('Only of this, such as token:ID'),
      since: z.iso.datetime().optional().describe('Not before'),
      until: z.iso.datetime().optional().describe('Before'),
      after: z.int().min(0).optional().describe('Rows after this number'),
      limit: z.int().min(1).max(MOST).default(100).describe('How many'),
    }),
    output: z.object({
      items: z.array(item),
      waiting: z.int().describe('Rows that are still on their way to the log'),
    }),
    errors: [],
    http: { method: 'GET', path: '/audit' },
    cli: {
      words: 'audit list',
      columns: ['seq', 'at', 'user', 'action', 'subject', 'from', 'to', 'reason'],
      examples: [
        'reeve audit list',
        'reeve audit list --task TASK-001',
        'reeve audit list --user ann --action approve',
      ],
    },
    run: async ({ rooms }, range) => ({ items: await rooms.audit.list(range), waiting: await rooms.audit.waiting() }),
  }),
  defineOperation({
    name: 'audit.verify',
    summary: 'Check that no audit row was changed, left out, moved or cut off',
    description:
      'Follows the whole chain of hashes and names the first row that does not fit. The end is compared with the head that is kept in Redis and with one that you kept, such as a line "audit head" of the log.',
    access: 'audit',
    input: z.object({
      head: z
        .string()
        .regex(/^[1-9]\d*:[0-9a-f]{64}$/, 'SEQ:HASH, as the log has it')
        .optional()
        .describe('A head that you kept: SEQ:HASH'),
    }),
    output: z.object({
      ok: z.boolean(),
      rows: z.int().describe('How many are good, from the first'),
      head,
      broken: z.object({ seq: z.int(), problem: z.string() }).optional().describe('The first row that does not fit'),
      kept: head.optional().describe('The newest head it was compared with'),
    }),
    errors: [],
    http: { method: 'GET', path: '/audit/verify' },
    cli: {
      words: 'audit verify',
      local: 'audit-verify',
      takesSettings: false,
      exits: [10],
      examples: ['reeve audit verify', `reeve audit verify --head 42:${'0'.repeat(64)}`],
    },
    run: async ({ rooms, signal }, { head: given }) => {
      const [seq, hash] = (given ?? '').split(':') as [string, string];
      const kept = await rooms.audit.kept();
      const heads = [...(kept ? [kept] : []), ...(given ? [{ seq: Number(seq), hash }] : [])];
      return rooms.audit.verify(heads, signal);
    },
  }),
];
