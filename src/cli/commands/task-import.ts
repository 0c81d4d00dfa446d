import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { ReeveError, reason } from '../../errors.ts';
import { daemonOf } from '../client.ts';
import type { CommandModule } from '../main.ts';
import { line } from '../render.ts';

const list = z.array(z.unknown());
const fileSchema = z.union([list.transform((tasks) => ({ tasks })), z.object({ tasks: list })]);

/** Sends the tasks of a JSON file: a list of them, or an object with `tasks`. */
export const run: CommandModule['run'] = async ({ input, flags }, output, surroundings) => {
  const path = z.object({ file: z.string() }).parse(input).file;
  const body = await tasksOf(path);
  const client = await daemonOf(flags, surroundings);
  const { signal } = surroundings;
  const { answer } = await client.ask({ method: 'POST', path: '/tasks/import', input: body, signal });
  if (output.form === 'json') output.json(answer);
  else output.print(`ok ${line(answer as Record<string, unknown>)}`);
  return 0;
};

async function tasksOf(path: string) {
  try {
    return fileSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    throw new ReeveError('USAGE', { problem: `${path}: ${reason(error)}`, hint: 'reeve schema task admit' });
  }
}
