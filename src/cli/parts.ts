import { z } from 'zod';
import type { Client } from './client.ts';

const partSchema = z.object({
  encoding: z.enum(['utf8', 'base64']),
  data: z.string(),
  next_offset: z.number().optional(),
});

/** A file of the daemon, part by part: none of it need fit into memory twice. */
export async function* partsOf(
  client: Client,
  { path, input, signal }: { path: string; input: Readonly<Record<string, unknown>>; signal?: AbortSignal },
): AsyncIterable<Buffer> {
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const { answer } = await client.ask({ method: 'GET', path, input: { ...input, offset }, signal });
    const part: z.output<typeof partSchema> = partSchema.parse(answer);
    yield Buffer.from(part.data, part.encoding);
    offset = part.next_offset;
  }
}
