import { z } from 'zod';
import { systemClock } from '../../clock.ts';
import { loadConfig } from '../../config.ts';
import { LOCAL_USER } from '../../identity/caller.ts';
import { ACCESS_NAMES } from '../../identity/permissions.ts';
import { Tokens } from '../../identity/tokens.ts';
import { Users } from '../../identity/users.ts';
import { silentLog } from '../../log.ts';
import { openStore } from '../../store/database.ts';
import { whereabouts } from '../client.ts';
import type { CommandModule, Surroundings } from '../main.ts';
import type { Typed } from '../program.ts';
import { ask } from '../question.ts';
import { render } from '../render.ts';
import { saveToken } from '../token-file.ts';

const DAY_MS = 86_400_000;

/** Asks the daemon, as any command does; what is of this machine alone, keeping the token or doing without a daemon, is done here. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { input, flags } = typed;
  const answer = flags.offline ? await writeHere(typed, input, surroundings) : await ask(typed, input, surroundings);
  const { token, first } = answer as { token: string; first: boolean };
  const kept = flags.save ? await saveToken(await dataDirOf(typed, surroundings), token) : undefined;
  if (output.form === 'json') {
    output.json(answer);
    return 0;
  }
  render(output, answer);
  if (kept) output.hint(`kept in ${kept}`);
  if (first) output.hint('from now on every call needs a token: --token TOKEN, or REEVE_TOKEN');
  return 0;
};

const inputSchema = z.object({
  user: z.string().default(LOCAL_USER),
  label: z.string().optional(),
  scopes: z.array(z.enum(ACCESS_NAMES)).optional(),
  days: z.number().positive().optional(),
});

/** Whoever may write the database is its owner and needs nobody's permission; the audit says that it was done so. */
async function writeHere({ flags }: Typed, input: unknown, { env, cwd }: Surroundings): Promise<unknown> {
  const { user, label, scopes, days } = inputSchema.parse(input);
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
  const { config } = loadConfig({ flags: { config: text('config'), 'data-dir': text('data-dir') }, env, cwd });
  const [clock, log, service] = [systemClock, silentLog, 'offline'];
  await using store = await openStore({ url: config.store.url, dataDir: config.dataDir, clock, log });
  const users = new Users({ store, clock, service, onRightsChanged: async () => {} });
  const tokens = new Tokens({ store, users, clock, service });
  const expiresInMs = days === undefined ? undefined : days * DAY_MS;
  // Awaited here, for the store closes when this returns.
  return await tokens.create({ user, label, scopes, expiresInMs, by: service });
}

async function dataDirOf({ flags }: Typed, { env, cwd }: Surroundings): Promise<string> {
  const text = (name: string) => (typeof flags[name] === 'string' ? flags[name] : undefined);
  return (await whereabouts({ config: text('config'), dataDir: text('data-dir'), env, cwd })).dataDir;
}
