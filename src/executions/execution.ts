import { z } from 'zod';

export const ENCODINGS = ['utf8', 'base64'] as const;
export type Encoding = (typeof ENCODINGS)[number];
/** owed: the next worker does it. manual: a person has to. failed: it was tried, and a person has to. */
export const ROLLBACKS = ['owed', 'manual', 'done', 'failed'] as const;
export type Rollback = (typeof ROLLBACKS)[number];

const text = z.string().optional();
const count = z.coerce.number().optional();

/** How the last attempt went, what it wrote, and what undoes it. */
export const executionSchema = z.object({
  started_at: text,
  completed_at: text,
  agent_id: text,
  result: text.describe('success, failure, timeout or cancelled'),
  error: text,
  error_details: z.record(z.string(), z.unknown()).optional(),
  retry_count: count,
  output: text.describe('Cut, if it is long'),
  output_key: text.describe('Where all of it is, if it is long'),
  output_store: text,
  output_bytes: count,
  stash: text,
  stash_key: text,
  stash_store: text,
  stash_encoding: z.enum(ENCODINGS).optional(),
  stash_bytes: count,
  stash_sha256: text,
  stash_at: text.describe('When what undoes it was saved'),
  stash_by: text,
  stash_token: text.describe('Fencing token of the lease it was saved under'),
  stash_command: text.describe('What undoes it, as its worker says'),
  rollback: z.enum(ROLLBACKS).optional().describe('owed: the next worker does it. manual, failed: a person has to'),
  rollback_at: text,
  rollback_by: text,
  rollback_reason: text,
});
export type Execution = z.output<typeof executionSchema>;

/** From `ade:task:{id}:execution`, where an empty text stands for none. */
export function readExecution(fields: Readonly<Record<string, string>>): Execution {
  const { error_details, ...given } = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
  return executionSchema.parse({
    ...given,
    ...(error_details !== undefined && { error_details: JSON.parse(error_details) as unknown }),
  });
}

/** Whether something was begun, not finished, and not undone: nobody should build on it. */
export const isOwed = ({ stash_at, rollback }: Omit<Execution, 'stash'>): boolean =>
  stash_at !== undefined && rollback !== undefined && rollback !== 'done';
