import { runDaemon } from '../../run.ts';
import type { CommandModule } from '../main.ts';

export const run: CommandModule['run'] = async ({ flags }, output, { env, cwd }) =>
  runDaemon({ flags, env, cwd, print: output.print });
