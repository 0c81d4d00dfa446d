import { type Command, type Manifest, makeManifest, type Option } from '../../src/cli/manifest.ts';
import { operations } from '../../src/operations/index.ts';
import { readVersion } from '../../src/version.ts';
import { code, link, origin, table } from './markdown.ts';

/** docs/cli.md: every command, from the manifest that the command line itself reads. */
export function cliPage(): string {
  const manifest = makeManifest(operations, readVersion());
  return `# Commands

${origin('`src/operations/` and `src/cli/local-commands.ts`')}

A command asks the daemon that \`--url\` or \`REEVE_URL\` names, else the one that runs on this data directory, else the
one at http://127.0.0.1:7420. Data goes to standard output, everything else to standard error. People get tables, pipes
get one \`name=value\` line per record, \`--json\` (or \`REEVE_OUTPUT=json\`) gives one JSON object. Exit codes are listed
with the [errors](errors.md#exit-codes).

${table(
  ['command', ''],
  manifest.commands.map((command) => [link(name(command)), command.summary]),
)}

Every command takes \`--json [fields]\`, \`--no-color\`, \`--config FILE\` and \`--help\`. Commands that ask a daemon also
take \`--url URL\`, \`--token TOKEN\` and \`--data-dir DIR\`.

${manifest.commands.map((command) => section(command, manifest)).join('\n\n')}
`;
}

function section(command: Command, { settings }: Manifest): string {
  const { summary, description, args, options, examples, exits, watch, follow, takesSettings, aliases } = command;
  const rows = [
    ...args.map((one) => [code(argument(one)), one.description]),
    ...options.map((one) => [code(flag(one)), one.description]),
    ...(watch ? [[code('--watch'), 'Show it again every two seconds until Ctrl-C']] : []),
    ...(follow ? [[code('--follow'), 'Go on with what happens, until Ctrl-C']] : []),
    ...(takesSettings ? [[code('--SETTING VALUE'), `Any of the ${settings.length} [settings](settings.md)`]] : []),
  ];
  return [
    `## ${name(command)}`,
    `${summary}.${description ? ` ${description}` : ''}${aliases.length > 0 ? ` Also: ${aliases.map((one) => code(`reeve ${one}`)).join(', ')}.` : ''}`,
    ...(rows.length > 0 ? [table(['takes', ''], rows)] : []),
    `\`\`\`sh\n${examples.join('\n')}\n\`\`\``,
    `Exit codes: ${exits.join(', ')}`,
  ].join('\n\n');
}

const name = ({ words }: Command): string => `reeve ${words.join(' ')}`;
const flag = ({ flag: word, type, placeholder }: Option): string =>
  type === 'boolean' ? word : `${word} ${/[|,]/.test(placeholder) ? placeholder : placeholder.toUpperCase()}`;

function argument({ name: word, required, variadic }: Command['args'][number]): string {
  const shown = `${word.toUpperCase()}${variadic ? '…' : ''}`;
  return required ? shown : `[${shown}]`;
}
