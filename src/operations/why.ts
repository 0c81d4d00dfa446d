import { z } from 'zod';
import { holdSchema } from '../hold.ts';
import { forCaller } from './allowed.ts';
import { defineOperation, type Operation } from './operation.ts';

const NAMES = 'the id of a task, of a request or of a held change; task:ID, resource:TYPE:ID, agent:ID or asset:ID';

export const whyOperations: readonly Operation[] = [
  defineOperation({
    name: 'why.explain',
    summary: 'Say why something is held, by whom, until when, and what you can do',
    access: 'read',
    input: z.object({ ref: z.string().min(1).max(2_000).describe(`What it is called: ${NAMES}`) }),
    output: z.object({
      subject: z.string(),
      state: z.string(),
      says: z.string(),
      holds: z.array(holdSchema),
      chain: z
        .array(z.object({ subject: z.string(), says: z.string() }))
        .describe('What its holders wait for, and so on'),
      next: z.string(),
    }),
    errors: ['NO_SUCH_REF'],
    http: { method: 'GET', path: '/why/{ref}' },
    cli: {
      words: 'why',
      args: ['ref'],
      view: 'why',
      examples: ['reeve why resource:database:prod', 'reeve why task:T-1', 'reeve why asset:http_request'],
    },
    mcp: {
      tool: 'explain',
      description:
        'Ask why something is held: who holds it, for what, until when, who waits, and what you can do now. Give any name: task:ID, resource:TYPE:ID, agent:ID, asset:ID.',
      readOnly: true,
      idempotent: true,
    },
    run: async ({ rooms, caller, operations }, { ref }) => {
      const answer = await rooms.why.explain(ref, caller.id);
      const holds = answer.holds.map((hold) => forCaller(hold, caller, operations));
      const next = holds[0]?.actions.find(({ allowed }) => allowed)?.command ?? 'reeve status';
      return { ...answer, holds, next };
    },
  }),
];
