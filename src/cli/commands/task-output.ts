import { once } from 'node:events';
import { daemonOf } from '../client.ts';
import type { CommandModule } from '../main.ts';
import { partsOf } from '../parts.ts';

/** Prints a file of a task as it is, byte by byte; with --json, one part of it as the daemon answers. */
export const run: CommandModule['run'] = async ({ command, input, flags }, output, surroundings) => {
  const { env, signal } = surroundings;
  const client = await daemonOf(flags, surroundings);
  const path = command.ask?.path ?? '/';
  const { REEVE_AGENT: agent } = env;
  const asked = path.endsWith('/stash') && agent ? { agent, ...input } : input;
  if (output.form === 'json') {
    output.json((await client.ask({ method: 'GET', path, input: asked, signal })).answer);
    return 0;
  }
  for await (const bytes of partsOf(client, { path, input: asked, signal })) {
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
  }
  return 0;
};
