import { Command as Commander, CommanderError, Option as CommanderOption } from 'commander';
import { fromText, type TextSchema } from '../coerce.ts';
import type { Command, Manifest, Option } from './manifest.ts';

/** What was typed, read by the manifest: the command, its input by property name, and the flags every command takes. */
export interface Typed {
  readonly command: Command;
  readonly input: Readonly<Record<string, unknown>>;
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
}

/** Tells people apart from the words: `reeve tasks list` is `reeve task list`. */
function plural(noun: string): string {
  if (noun.endsWith('y')) return `${noun.slice(0, -1)}ies`;
  return noun.endsWith('ch') ? `${noun}es` : `${noun}s`;
}

const EXIT_WORDS: Readonly<Record<number, string>> = {
  0: 'ok',
  1: 'failed',
  2: 'usage',
  3: 'not found',
  4: 'denied',
  5: 'conflict',
  6: 'held',
  7: 'nothing there',
  8: 'unavailable',
  9: 'timeout',
  10: 'differs',
};

type Run = (typed: Typed) => Promise<void>;

/** Makes a commander program of the manifest. `run` is called with what was typed. */
export function buildProgram(manifest: Manifest, argv: readonly string[], run: Run): Commander {
  const program = new Commander('reeve')
    .description('Mirrors agent assets, hands out work, holds the locks, asks people before anything risky.')
    .showSuggestionAfterError()
    .addHelpText(
      'after',
      '\nEvery command takes --json. Exit codes: 0 ok, 2 usage, 8 unavailable; reeve COMMAND --help has the rest.',
    );
  const words = argv[0] === 'help' ? argv.slice(1) : argv;
  // The longest: with options of its own, `reeve sync` would swallow those of `reeve sync status`.
  const meant = manifest.commands
    .filter((command) => isMeant(command, words))
    .toSorted((one, other) => one.words.length - other.words.length)
    .at(-1);
  // `reeve asset get ID --version 1.0.0` asks for a version of the asset.
  if (!meant?.options.some(({ flag }) => flag === '--version')) program.version(manifest.version, '-V, --version');
  for (const command of manifest.commands) {
    const leaf = addName(program, command);
    // The others are only names in the help; their options need not be made.
    if (command === meant) addForm(leaf, command, manifest, run);
  }
  return program;
}

const isMeant = ({ words, aliases }: Command, argv: readonly string[]): boolean =>
  words.every((word, at) => [word, plural(word), ...(at === words.length - 1 ? aliases : [])].includes(argv[at] ?? ''));

function addName(program: Commander, command: Command): Commander {
  const path = [...command.words];
  const last = path.pop() as string;
  const leaf = path.reduce(descend, program).command(last);
  return leaf
    .aliases([...command.aliases])
    .summary(command.summary)
    .description(about(command));
}

function addForm(leaf: Commander, command: Command, manifest: Manifest, run: Run): void {
  for (const { name, required, variadic, description } of command.args) {
    const word = variadic ? `${name}...` : name;
    leaf.argument(required ? `<${word}>` : `[${word}]`, description);
  }
  for (const option of command.options) leaf.addOption(optionOf(option));
  if (command.watch) leaf.option('--watch', 'show it again every two seconds until Ctrl-C');
  if (command.follow) leaf.option('--follow', 'go on with what happens, until Ctrl-C');
  if (command.watch || command.follow) leaf.option('--jsonl', 'one JSON object a line, as it goes on');
  leaf.option('--json [fields]', 'answer with one JSON object; FIELDS keeps only these, as in --json id,title');
  leaf.option('--no-color', 'no colours');
  if (command.asks) {
    leaf
      .option('--url <url>', 'the daemon to ask (REEVE_URL)')
      .option('--token <token>', 'who is asking (REEVE_TOKEN)');
  }
  leaf.option('--config <file>', 'read this file rather than ./reeve.yaml (REEVE_CONFIG)');
  if (command.takesSettings) for (const setting of manifest.settings) leaf.addOption(optionOf(setting));
  else leaf.option('--data-dir <dir>', 'find the daemon by its data directory (REEVE_DATA_DIR)');
  leaf.addHelpText('after', after(command));
  leaf.action(async () => run(typed(command, leaf)));
}

function descend(parent: Commander, word: string): Commander {
  const known = parent.commands.find((child) => child.name() === word);
  return known ?? parent.command(word).alias(plural(word)).description(`reeve ${word} …`);
}

function optionOf({ flag, type, placeholder, description }: Option): CommanderOption {
  const option = new CommanderOption(type === 'boolean' ? `${flag} [yes|no]` : `${flag} <${placeholder}>`, description);
  // Given again, further parts of one object; of anything else the last one counts.
  if (type === 'object') option.argParser((value: string, before?: string) => (before ? `${before}\n${value}` : value));
  return option;
}

function typed(command: Command, leaf: Commander): Typed {
  const given = leaf.opts<Record<string, string | boolean | undefined>>();
  const optionValue = (flag: string) => given[new CommanderOption(flag).attributeName()];
  const { properties = {} } = (command.input ?? {}) as { properties?: Readonly<Record<string, TextSchema>> };
  const input: Record<string, unknown> = {};
  // A body holds values, so that words are read as what the input wants; what does not fit is refused by the daemon.
  const put = (name: string, value: unknown) => {
    if (value !== undefined) input[name] = typeof value === 'string' ? fromText(properties[name] ?? {}, value) : value;
  };
  for (const [index, { name }] of command.args.entries()) put(name, leaf.processedArgs[index]);
  for (const { flag, property, isSwitch } of command.options) if (!isSwitch) put(property, optionValue(flag));
  const flags = Object.fromEntries(
    leaf.options.map(({ long }) => [(long ?? '').replace(/^--(no-)?/, ''), optionValue(long ?? '')]),
  );
  return { command, input, flags: { ...flags, color: given.color } };
}

const about = ({ summary, description }: Command): string =>
  description ? `${summary}.\n${description}` : `${summary}.`;

function after({ examples, exits }: Command): string {
  const codes = exits.map((code) => `${code} ${EXIT_WORDS[code] ?? ''}`.trim()).join(' · ');
  return `\nExamples:\n${examples.map((example) => `  ${example}`).join('\n')}\n\nExit codes: ${codes}`;
}

export { CommanderError };
