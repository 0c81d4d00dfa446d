import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ID_RULES, isId } from '../redis/ids.ts';

export const JOB_TYPES = ID_RULES.jobQueue.words as readonly JobType[];
export type JobType = 'lock_cleanup' | 'approval_timeout' | 'task_timeout' | 'deadlock_detect' | 'archive';

/** What is to be done, once it is due. In Redis it is the JSON text that a raw client would write, too. */
export interface Job {
  readonly type: JobType;
  /** The same id is the same job: it runs in one place at a time. */
  readonly id: string;
  /** What it is about: a key or an id, as its type has it. */
  readonly target?: string | undefined;
}

const member = z.looseObject({
  type: z.enum(JOB_TYPES as [JobType, ...JobType[]]),
  id: z
    .string()
    .refine((id) => isId('job', id))
    .optional(),
  target: z.string().max(2_048).optional(),
});

/** Reads a member of a queue; undefined if it is none. One without an id gets one from its text. */
export function parseJob(text: string): Job | undefined {
  const parsed = member.safeParse(jsonOr(text));
  if (!parsed.success) return undefined;
  const { type, target, id = `${type}-${createHash('sha1').update(text).digest('hex').slice(0, 16)}` } = parsed.data;
  return { type, id, target };
}

/** The fields in one order, so that the same job is the same member. */
export const formatJob = ({ type, id, target }: Omit<Job, 'id'> & { readonly id?: string }): string =>
  JSON.stringify({ type, target, id });

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
