import { EXIT } from '../error-catalogue.ts';
import { type Call, daemonOf } from './client.ts';
import { followOn } from './follow.ts';
import type { Surroundings, View } from './main.ts';
import type { Command } from './manifest.ts';
import type { Output } from './output.ts';
import type { Typed } from './program.ts';
import { watch } from './watch.ts';

/** Puts a command to the daemon and shows the answer: once, again and again (--watch), or as it goes on (--follow). */
export async function askDaemon(
  { command, input, flags }: Typed,
  output: Output,
  { env, cwd, signal }: Surroundings,
): Promise<number> {
  const find = () => daemonOf(flags, { env, cwd });
  const { method = 'GET', path = '/' } = command.ask ?? {};
  const call = { method, path, input: { ...whoAsks(command, env), ...input }, signal } satisfies Call;
  const view = await viewOf(command);
  const showOn = (to: Output, answer: unknown) =>
    to.form === 'json' ? to.json(answer) : view(to, answer as never, command);
  const show = (answer: unknown) => showOn(output, answer);
  if (flags.follow) {
    for await (const item of followOn(find, call, output.hint)) {
      show(output.form === 'json' ? item : { items: [item] });
    }
    return EXIT.interrupted;
  }
  if (flags.watch) {
    const ask = async () => (await (await find()).ask(call)).answer;
    return watch(output, { ask, show: showOn, signal });
  }
  const client = await find();
  const { answer, status } = await client.ask(call);
  show(answer);
  return exitOf(status);
}

/** An agent need not say its name with every word: a command that reeve runs for it has it in its environment. */
function whoAsks(command: Command, { REEVE_AGENT: agent }: Surroundings['env']): { readonly agent?: string } {
  const { required = [] } = (command.input ?? {}) as { readonly required?: readonly string[] };
  return agent && required.includes('agent') ? { agent } : {};
}

/** Answers that are no errors but still control flow: nothing there, not ready. */
function exitOf(status: number): number {
  if (status === 204) return EXIT.nothing;
  return status < 400 ? EXIT.ok : EXIT.unavailable;
}

async function viewOf(command: Command): Promise<View['show']> {
  if (command.view) return ((await import(`./views/${command.view}.js`)) as View).show;
  const { render } = await import('./render.ts');
  return (output, answer) => render(output, answer, command.columns);
}
