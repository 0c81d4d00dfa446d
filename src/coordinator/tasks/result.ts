import { z } from 'zod';

/** What an agent says about finished work. The other four fields of a result are reeve's to fill in. */
export const resultSchema = z
  .object({
    files_modified: z.array(z.string().max(4_096)).max(10_000).default([]),
    notes: z.string().max(100_000).default(''),
    errors: z.array(z.string().max(20_000)).max(1_000).default([]),
  })
  .loose();
export type WorkResult = z.output<typeof resultSchema>;

const OURS = new Set(['task_id', 'agent_id', 'started_at', 'completed_at']);

/** The text of a result after its first four fields, which the script writes: `"files_modified":[…],…}`. */
export function restOf(result: Partial<WorkResult> = {}): string {
  const { files_modified, notes, errors, ...more } = resultSchema.parse(result);
  const extra = Object.fromEntries(Object.entries(more).filter(([name]) => !OURS.has(name)));
  return JSON.stringify({ files_modified, notes, errors, ...extra }).slice(1);
}

/** A result that a plain client wrote: any text. What cannot be read as a result is kept as its notes. */
export function adoptedResult(text: string | null): Partial<WorkResult> {
  if (text === null) return { errors: ['the agent left no result'] };
  try {
    const parsed = resultSchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : { notes: text.slice(0, 100_000) };
  } catch {
    return { notes: text.slice(0, 100_000) };
  }
}
