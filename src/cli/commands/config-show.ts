import { stringify } from 'yaml';
import { loadConfig, maskedConfig } from '../../config.ts';
import { listSettings } from '../../settings.ts';
import type { CommandModule } from '../main.ts';
import { line, table } from '../render.ts';

/** The settings as this machine would use them now; with --url, as a running daemon does. */
export const run: CommandModule['run'] = async (typed, output, surroundings) => {
  const { file, settings, sources } = await answer(typed, surroundings);
  if (output.form === 'json') {
    output.json({ ...(file && { file }), settings, ...(typed.input.sources === undefined ? {} : { sources }) });
    return 0;
  }
  if (!typed.input.sources) {
    output.print(stringify(settings).trimEnd());
    return 0;
  }
  const rows = listSettings().map(({ name }) => ({ setting: name, value: at(settings, name), source: sources[name] }));
  const names = ['setting', 'value', 'source'];
  if (output.form === 'lines') for (const row of rows) output.print(line(row, names));
  else for (const text of table(rows, names, output.columns)) output.print(text);
  return 0;
};

interface Shown {
  readonly file?: string | undefined;
  readonly settings: unknown;
  readonly sources: Readonly<Record<string, string>>;
}

async function answer(
  typed: Parameters<CommandModule['run']>[0],
  { env, cwd, signal }: Parameters<CommandModule['run']>[2],
): Promise<Shown> {
  if (typeof typed.flags.url === 'string') {
    const { Client } = await import('../client.ts');
    const token = typeof typed.flags.token === 'string' ? typed.flags.token : env.REEVE_TOKEN;
    const asked = await new Client(typed.flags.url, token).ask({
      method: 'GET',
      path: '/config',
      input: { sources: true },
      signal,
    });
    return asked.answer as Shown;
  }
  const { config, sources, file } = loadConfig({ flags: typed.flags, env, cwd });
  return { file, settings: maskedConfig(config), sources };
}

function at(tree: unknown, name: string): unknown {
  return name.split('.').reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], tree);
}
