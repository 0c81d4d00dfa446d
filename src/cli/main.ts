import { readFileSync } from 'node:fs';
import { EXIT } from '../error-catalogue.ts';
import { asReeveError, ReeveError } from '../errors.ts';
import type { Command, Manifest } from './manifest.ts';
import { createOutput, type Output, reportFailure } from './output.ts';
import { buildProgram, CommanderError, type Typed } from './program.ts';

/** What a module of cli/commands exports. The number it returns is the exit code. */
export interface CommandModule {
  readonly run: (typed: Typed, output: Output, surroundings: Surroundings) => Promise<number>;
}

/** What a module of cli/views exports: how people see an answer. */
export interface View {
  readonly show: (output: Output, answer: never, command: Command) => void;
}

export interface Surroundings {
  readonly manifest: Manifest;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Aborted by Ctrl-C and SIGTERM; the reason is the signal's name. */
  readonly signal: AbortSignal;
}

const WATCH_MS = 2_000;
/** What a shell says of a program that SIGTERM ended. */
const TERMINATED = 143;

/** Reads the words, runs what they ask for, returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const manifest = JSON.parse(readFileSync(new URL('./manifest.json', import.meta.url), 'utf8')) as Manifest;
  // A reader that closes its end early (head) is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  let exit = 0;
  const program = buildProgram(manifest, async (typed) => {
    exit = await runTyped(typed, manifest);
  });
  const outputOnUsage = () =>
    createOutput({ ...streams(), json: argv.some((word) => word.startsWith('--json')) || undefined });
  quietly(program);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return 0;
    if (error.code === 'commander.help') return 2;
    const problem = error.message.replace(/^error: /, '').replace(/\n\(/, ' (');
    return reportFailure(outputOnUsage(), new ReeveError('USAGE', { problem, hint: 'reeve --help' }));
  }
}

/** commander would print and exit by itself; how failures look is ours to say. */
function quietly(program: ReturnType<typeof buildProgram>): void {
  program.exitOverride().configureOutput({ outputError: () => {} });
  for (const child of program.commands) quietly(child);
}

async function runTyped(typed: Typed, manifest: Manifest): Promise<number> {
  const output = createOutput({ ...streams(), json: typed.flags.json, color: typed.flags.color !== false });
  const interrupt = new AbortController();
  const { command } = typed;
  // The daemon has its own ideas of signals.
  if (command.local !== 'daemon') {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupt.abort(name));
  }
  const surroundings: Surroundings = { manifest, env: process.env, cwd: process.cwd(), signal: interrupt.signal };
  try {
    if (command.local) {
      const module = (await import(`./commands/${command.local}.js`)) as CommandModule;
      return await module.run(typed, output, surroundings);
    }
    return await askDaemon(typed, output, surroundings);
  } catch (error) {
    if (interrupt.signal.aborted) return interrupt.signal.reason === 'SIGTERM' ? TERMINATED : EXIT.interrupted;
    return reportFailure(output, asReeveError(error));
  }
}

async function askDaemon(
  { command, input, flags }: Typed,
  output: Output,
  { env, cwd, signal }: Surroundings,
): Promise<number> {
  const { daemonOf } = await import('./client.ts');
  const client = await daemonOf(flags, { env, cwd });
  const call = { method: command.ask?.method ?? 'GET', path: command.ask?.path ?? '/', input, signal };
  const show = await viewOf(command);
  if (flags.follow) {
    for await (const { item } of client.follow(call)) {
      if (output.form === 'json') output.json(item);
      else show(output, { items: [item] } as never, command);
    }
    return signal.aborted ? EXIT.interrupted : 0;
  }
  for (;;) {
    const { answer, status } = await client.ask(call);
    if (flags.watch && output.form === 'table') output.print('\u001b[2J\u001b[H');
    if (output.form === 'json') output.json(answer);
    else show(output, answer as never, command);
    if (!flags.watch) return exitOf(status);
    const { systemClock } = await import('../clock.ts');
    await systemClock.sleep(WATCH_MS, signal);
    if (signal.aborted) return EXIT.interrupted;
  }
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

const streams = () => ({ env: process.env, stdout: process.stdout, stderr: process.stderr });
