import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { ReeveError, reason } from '../../errors.ts';
import type { CommandModule, Surroundings } from '../main.ts';
import { ask } from '../question.ts';
import { render } from '../render.ts';

/** Hands in a file, or a few words, for the task whose lease the caller has. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { input, flags } = typed;
  const { file } = flags;
  const content =
    typeof file === 'string'
      ? { encoding: 'base64', data: (await bytesOf(file, surroundings)).toString('base64') }
      : {};
  const answer = await ask(typed, { ...leaseFrom(surroundings.env, input.task), ...input, ...content }, surroundings);
  if (output.form === 'json') output.json(answer);
  else render(output, answer);
  return 0;
};

/** A command that reeve runs for a task has its lease in the environment, and need not spell it out. */
function leaseFrom(env: Surroundings['env'], task: unknown): Readonly<Record<string, string>> {
  const isOwn = env.REEVE_TASK_ID === task;
  const found = {
    agent: env.REEVE_AGENT,
    lock_id: isOwn ? env.REEVE_LOCK_ID : undefined,
    fencing_token: isOwn ? env.REEVE_FENCING_TOKEN : undefined,
  };
  return Object.fromEntries(Object.entries(found).filter((pair): pair is [string, string] => pair[1] !== undefined));
}

async function bytesOf(name: string, { cwd }: Surroundings): Promise<Buffer> {
  if (name === '-') return buffer(process.stdin);
  return readFile(resolve(cwd, name)).catch((error: unknown) => {
    throw new ReeveError('USAGE', {
      problem: `${name} cannot be read: ${reason(error)}`,
      hint: 'Name a file, or - for standard input.',
    });
  });
}
