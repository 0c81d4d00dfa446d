import { z } from 'zod';
import { ERRORS } from '../error-catalogue.ts';
import type { Operation } from '../operations/operation.ts';
import { listSettings } from '../settings.ts';
import { LOCAL_COMMANDS, type LocalCommand } from './local-commands.ts';

/** What the command line must know of the operations, as data: reading it is cheaper than loading them. */
export interface Manifest {
  readonly version: string;
  readonly commands: readonly Command[];
  /** Flags of commands that read the settings themselves. */
  readonly settings: readonly Option[];
}

export interface Command {
  readonly words: readonly string[];
  readonly aliases: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly args: readonly Argument[];
  readonly options: readonly Option[];
  readonly examples: readonly string[];
  readonly exits: readonly number[];
  /** Asked of the daemon. */
  readonly ask?: { readonly method: string; readonly path: string };
  /** Speaks to a daemon: takes --url and --token. */
  readonly asks: boolean;
  /** Answered by a module of cli/commands. */
  readonly local?: string;
  readonly takesSettings: boolean;
  readonly view?: string;
  readonly columns?: readonly string[];
  readonly watch: boolean;
  readonly follow: boolean;
  /** JSON Schemas of what goes in and comes out, for `reeve schema`. */
  readonly input?: unknown;
  readonly output?: unknown;
}

export interface Argument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly variadic?: boolean;
}

export interface Option {
  readonly flag: string;
  readonly property: string;
  readonly type: 'boolean' | 'object' | 'text';
  readonly placeholder: string;
  readonly description: string;
  /** Stays here: no input of the operation. */
  readonly isSwitch?: true;
}

export function makeManifest(operations: readonly Operation[], version: string): Manifest {
  const commands = [...operations.map(fromOperation), ...LOCAL_COMMANDS.map(fromLocal)];
  return {
    version,
    commands: commands.toSorted((a, b) => a.words.join(' ').localeCompare(b.words.join(' '))),
    settings: listSettings().map(({ name, flag, description, schema }) => ({
      flag,
      property: name,
      type: schema.type === 'boolean' ? 'boolean' : 'text',
      placeholder: placeholder(flag.slice(2), schema),
      description,
    })),
  };
}

interface Property {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly items?: { readonly enum?: readonly unknown[] };
}

function fromOperation(operation: Operation): Command {
  const { cli, http, summary, description, input, output, errors, follow } = operation;
  const schema = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' });
  const properties = (schema.properties ?? {}) as Record<string, Property>;
  const positional = cli.args ?? [];
  const isRequired = (name: string) => schema.required?.includes(name) ?? false;
  return {
    words: cli.words.split(' '),
    aliases: [],
    summary,
    ...(description && { description }),
    args: positional.map((name) => ({
      name,
      description: properties[name]?.description ?? '',
      required: isRequired(name),
    })),
    options: Object.entries(properties)
      .filter(([name]) => !positional.includes(name))
      .map(([name, property]) => option(name, property, isRequired(name)))
      .concat(Object.entries(cli.switches ?? {}).map(([name, meaning]) => switchOf(name, meaning))),
    examples: cli.examples,
    exits: [...new Set([0, 2, 8, ...(cli.exits ?? []), ...errors.map((code) => ERRORS[code].exit)])].toSorted(
      (a, b) => a - b,
    ),
    ...(cli.local ? { local: cli.local } : {}),
    ask: { method: http.method, path: http.path },
    asks: true,
    takesSettings: cli.takesSettings ?? cli.local !== undefined,
    ...(cli.view && { view: cli.view }),
    ...(cli.columns && { columns: cli.columns }),
    watch: cli.watch ?? false,
    follow: follow !== undefined,
    input: schema,
    output: z.toJSONSchema(output, { io: 'output', unrepresentable: 'any' }),
  };
}

function fromLocal(command: LocalCommand): Command {
  const {
    words,
    aliases = [],
    args = [],
    options = [],
    takesSettings = false,
    asks = false,
    module,
    exits = [0, 2],
    ...rest
  } = command;
  return {
    ...rest,
    words: words.split(' '),
    aliases,
    args,
    options,
    exits,
    takesSettings,
    asks,
    local: module,
    watch: false,
    follow: false,
  };
}

function option(name: string, property: Property, isRequired: boolean): Option {
  const flag = `--${name.replaceAll('_', '-')}`;
  const extras = [
    isRequired ? 'required' : '',
    property.default === undefined || property.default === false ? '' : `default ${JSON.stringify(property.default)}`,
  ];
  const notes = extras.filter(Boolean).join(', ');
  return {
    flag,
    property: name,
    type: property.type === 'boolean' || property.type === 'object' ? property.type : 'text',
    placeholder: placeholder(name, property),
    description: `${property.description ?? ''}${notes ? ` (${notes})` : ''}`,
  };
}

/** `save` is there or not; `file=path` takes a word. */
function switchOf(given: string, description: string): Option {
  const [name = given, placeholder] = given.split('=');
  return {
    flag: `--${name}`,
    property: name,
    type: placeholder === undefined ? 'boolean' : 'text',
    placeholder: placeholder ?? name,
    description,
    isSwitch: true,
  };
}

/** A choice shows its values, anything else its name. */
function placeholder(name: string, { enum: choices, items }: Property): string {
  const values = choices ?? items?.enum;
  return values ? values.map(String).join(items ? ',' : '|') : name.replaceAll('_', '-');
}
