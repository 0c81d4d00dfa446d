import { readFileSync } from 'node:fs';
import { EXIT } from '../error-catalogue.ts';
import { asReeveError, ReeveError } from '../errors.ts';
import { checkFields } from './fields.ts';
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
  /** Aborted by a second one. Without asking for it, a command simply ends of that. */
  readonly insisted: () => AbortSignal;
}

/** What a shell says of a program that SIGTERM ended. */
const TERMINATED = 143;

/** Reads the words, runs what they ask for, returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const manifest = JSON.parse(readFileSync(new URL('./manifest.json', import.meta.url), 'utf8')) as Manifest;
  // A reader that closes its end early (head) is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  let exit = 0;
  const program = buildProgram(manifest, argv, async (typed) => {
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
    return reportFailure(outputOnUsage(), new ReeveError('USAGE', { problem, hint: helpOn(argv, manifest) }));
  }
}

/** The help nearest to what was typed: `reeve config shwo` is sent to `reeve config --help`. */
function helpOn(argv: readonly string[], { commands }: Manifest): string {
  const isStart = (words: readonly string[]) =>
    commands.some((one) => words.every((word, at) => one.words[at] === word));
  const known = argv.findIndex((_, at) => !isStart(argv.slice(0, at + 1)));
  return ['reeve', ...argv.slice(0, known < 0 ? argv.length : known), '--help'].join(' ');
}

/** commander would print and exit by itself; how failures look is ours to say. */
function quietly(program: ReturnType<typeof buildProgram>): void {
  program.exitOverride().configureOutput({ outputError: () => {} });
  for (const child of program.commands) quietly(child);
}

async function runTyped(typed: Typed, manifest: Manifest): Promise<number> {
  const output = createOutput({
    ...streams(),
    json: typed.flags.json ?? (typed.flags.jsonl ? true : undefined),
    color: typed.flags.color !== false,
  });
  const interrupt = new AbortController();
  const { command } = typed;
  // The daemon has its own ideas of signals.
  if (command.local !== 'daemon') {
    for (const name of SIGNALS) process.once(name, () => interrupt.abort(name));
  }
  const surroundings: Surroundings = {
    manifest,
    env: process.env,
    cwd: process.cwd(),
    signal: interrupt.signal,
    insisted: () => secondSignal(interrupt.signal),
  };
  try {
    checkFields(command, typed.flags.json);
    if (command.local) {
      const module = (await import(`./commands/${command.local}.js`)) as CommandModule;
      return await module.run(typed, output, surroundings);
    }
    const { askDaemon } = await import('./ask.ts');
    return await askDaemon(typed, output, surroundings);
  } catch (error) {
    if (interrupt.signal.aborted) return interrupt.signal.reason === 'SIGTERM' ? TERMINATED : EXIT.interrupted;
    return reportFailure(output, asReeveError(error));
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

function secondSignal(first: AbortSignal): AbortSignal {
  const second = new AbortController();
  let count = first.aborted ? 1 : 0;
  const hear = (name: NodeJS.Signals) => {
    if (++count > 1) second.abort(name);
  };
  for (const name of SIGNALS) process.on(name, hear);
  return second.signal;
}

const streams = () => ({ env: process.env, stdout: process.stdout, stderr: process.stderr });
