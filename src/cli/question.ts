import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { ReeveError, reason } from '../errors.ts';
import { findDaemon } from './client.ts';
import type { Surroundings } from './main.ts';
import type { Typed } from './program.ts';

/** Puts a command's own question to the daemon, for modules that do more than ask. */
export async function ask(
  { command, flags }: Typed,
  input: Readonly<Record<string, unknown>>,
  { env, cwd, signal }: Surroundings,
): Promise<unknown> {
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
  const client = await findDaemon({
    url: text('url'),
    token: text('token'),
    config: text('config'),
    dataDir: text('data-dir'),
    env,
    cwd,
  });
  const { method = 'GET', path = '/' } = command.ask ?? {};
  return (await client.ask({ method, path, input, signal })).answer;
}

/** The text of a file that was named on the command line; `-` is standard input. */
export async function fileText(name: string, { cwd }: Surroundings): Promise<string> {
  if (name === '-') return readAll(process.stdin);
  try {
    return await readFile(resolve(cwd, name), 'utf8');
  } catch (error) {
    throw new ReeveError('USAGE', {
      problem: `${name} cannot be read: ${reason(error)}`,
      hint: 'Name a file, or - for standard input.',
    });
  }
}
