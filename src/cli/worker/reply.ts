import { open } from 'node:fs/promises';
import { z } from 'zod';
import { FAILURE_CLASSES } from './exit-rules.ts';

/** What a command may say about its end, as JSON. Fields that we do not know are kept with the result. */
const replySchema = z.looseObject({
  files_modified: z.array(z.string()).optional(),
  notes: z.string().optional(),
  errors: z.array(z.string()).optional(),
  /** Only of a failure: what went wrong, of which class, and on quota when it is there again. */
  error: z.string().optional(),
  class: z.enum(FAILURE_CLASSES).optional(),
  resets_at: z.union([z.number(), z.iso.datetime({ offset: true })]).optional(),
});
export type Reply = z.output<typeof replySchema>;

export type ReadReply =
  | { readonly outcome: 'read'; readonly reply: Reply }
  | { readonly outcome: 'none' }
  | { readonly outcome: 'unreadable'; readonly problem: string };

const MOST_BYTES = 1024 * 1024;

/** Reads the result file by its name: a command may have put another file in the place of ours. */
export async function readReply(file: string): Promise<ReadReply> {
  const text = await read(file);
  if (text === undefined) return { outcome: 'unreadable', problem: `it is longer than ${MOST_BYTES} bytes` };
  if (text.trim() === '') return { outcome: 'none' };
  try {
    const parsed = replySchema.safeParse(JSON.parse(text));
    if (parsed.success) return { outcome: 'read', reply: parsed.data };
    const [issue] = parsed.error.issues;
    return { outcome: 'unreadable', problem: `${issue?.path.join('.') || 'it'}: ${issue?.message}` };
  } catch {
    return { outcome: 'unreadable', problem: 'it is no JSON' };
  }
}

/** Undefined: too long. A file that is not there says nothing. */
async function read(file: string): Promise<string | undefined> {
  const handle = await open(file, 'r').catch(() => undefined);
  if (!handle) return '';
  try {
    const { size } = await handle.stat();
    return size > MOST_BYTES ? undefined : await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}
