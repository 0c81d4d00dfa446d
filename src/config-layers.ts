import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { closest, distance } from 'fastest-levenshtein';
import { isMap, isNode, isScalar, LineCounter, parseDocument, type YAMLMap } from 'yaml';
import { fromText } from './coerce.ts';
import { ReeveError, reason } from './errors.ts';
import type { Setting } from './settings.ts';

/** Flags as the command line had them, without the dashes: { 'http-port': '8080' }. */
export type Flags = Readonly<Record<string, string | boolean | undefined>>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** Values of one layer by setting name, each with where it was said and what a relative path starts from. */
export type Layer = Map<string, { readonly value: unknown; readonly source: string; readonly base: string }>;

/** Variables with our prefix that are no settings: what the command line reads, and where the file is. */
const OTHER_VARIABLES = ['REEVE_CONFIG', 'REEVE_URL', 'REEVE_TOKEN', 'REEVE_OUTPUT', 'REEVE_NO_INPUT'];
/** What `reeve worker`, `run` and `hold` hand to the commands they run, which may well call reeve themselves. */
const HANDED_DOWN = [
  ...['REEVE_AGENT', 'REEVE_AGENT_ID', 'REEVE_LOCK', 'REEVE_LOCK_ID', 'REEVE_FENCING_TOKEN', 'REEVE_ATTEMPT'],
  ...[
    'REEVE_TASK_ID',
    'REEVE_TASK_TITLE',
    'REEVE_TASK_FILE',
    'REEVE_RESULT_FILE',
    'REEVE_STASH_FILE',
    'REEVE_EXIT_CODE',
  ],
];
/** Kubernetes sets these in every pod beside a service called reeve or reeve-…; nobody typed them. */
const SERVICE_LINK = /^REEVE_(\w+_)?(SERVICE_(HOST|PORT)|PORT_\d+_(TCP|UDP|SCTP))(_\w+)?$/;
const isServiceLink = (variable: string, value = ''): boolean =>
  SERVICE_LINK.test(variable) || (variable.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value));

export function fromFlags(settings: readonly Setting[], flags: Flags, cwd: string): Layer {
  const layer: Layer = new Map();
  for (const { name, flag, schema } of settings) {
    const text = flags[flag.slice(2)];
    if (text === undefined) continue;
    const value = typeof text === 'string' ? fromText(schema, text) : text;
    layer.set(name, { value, source: `flag ${flag}`, base: cwd });
  }
  return layer;
}

export function fromEnvironment(
  settings: readonly Setting[],
  env: Environment,
  cwd: string,
  problems: string[],
): Layer {
  const layer: Layer = new Map();
  const known = new Set([...OTHER_VARIABLES, ...HANDED_DOWN]);
  for (const { name, variables, schema, secret } of settings) {
    for (const variable of variables) {
      known.add(variable);
      if (secret) known.add(`${variable}_FILE`);
      const said = inline(env, variable) ?? (secret ? secretFile(env, `${variable}_FILE`, cwd, problems) : undefined);
      if (said === undefined || layer.has(name)) continue;
      layer.set(name, { value: fromText(schema, said.text), source: `environment ${said.variable}`, base: cwd });
    }
  }
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith('REEVE_') || known.has(variable) || isServiceLink(variable, value)) continue;
    problems.push(`unknown variable ${variable} in the environment${didYouMean(variable, [...known])}`);
  }
  return layer;
}

interface Said {
  readonly variable: string;
  readonly text: string;
}

/** An empty variable means "not set": that is how compose files and unit files leave one out. */
function inline(env: Environment, variable: string): Said | undefined {
  const text = env[variable];
  return text && !isServiceLink(variable, text) ? { variable, text } : undefined;
}

/** Secrets may be kept in files (containers, systemd credentials): GITHUB_TOKEN_FILE names one. */
function secretFile(env: Environment, variable: string, cwd: string, problems: string[]): Said | undefined {
  const file = env[variable];
  if (!file) return undefined;
  try {
    return { variable, text: readFileSync(resolve(cwd, file), 'utf8').trim() };
  } catch (error) {
    problems.push(`${variable}: ${reason(error)}`);
    return undefined;
  }
}

export function fromFile(settings: readonly Setting[], file: string, problems: string[]): Layer {
  const lines = new LineCounter();
  const document = parseDocument(readText(file), { lineCounter: lines });
  const layer: Layer = new Map();
  const shown = basename(file);
  for (const error of document.errors) {
    problems.push(`${shown}:${error.linePos?.[0].line ?? 1}: ${error.message.split('\n')[0]}`);
  }
  if (document.errors.length > 0 || document.contents === null) return layer;
  if (!isMap(document.contents)) {
    problems.push(`${shown}: must be a mapping of settings`);
    return layer;
  }
  const leaves = new Set(settings.map(({ name }) => name));
  const sections = new Set(settings.flatMap(({ name }) => sectionsAbove(name)));
  const visit = (map: YAMLMap, trail: string): void => {
    for (const { key, value } of map.items) {
      const word = isScalar(key) ? String(key.value) : String(key);
      const name = trail ? `${trail}.${word}` : word;
      const source = `${shown}:${lines.linePos((isScalar(key) && key.range?.[0]) || 0).line}`;
      if (leaves.has(name)) {
        layer.set(name, { value: isNode(value) ? value.toJS(document) : value, source, base: dirname(file) });
      } else if (!sections.has(name)) {
        problems.push(`unknown setting ${name} (${source})${didYouMean(name, [...leaves, ...sections])}`);
      } else if (isMap(value)) {
        visit(value, name);
      } else if (!isScalar(value) || value.value !== null) {
        problems.push(`${name}: must be a mapping (${source})`);
      }
    }
  };
  visit(document.contents, '');
  return layer;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ReeveError('CONFIG_UNREADABLE', { file, problem: reason(error) }, { cause: error });
  }
}

/** Offers the nearest known word, if it is near enough to be a slip of the finger. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = known.length > 0 ? closest(word, known) : undefined;
  return near && distance(word, near) <= Math.max(2, word.length / 3) ? `; did you mean ${near}?` : '';
}

/** 'redis.tls.verify' stands under 'redis.tls' and 'redis'. */
function sectionsAbove(name: string): string[] {
  const words = name.split('.');
  return words.slice(1).map((_, index) => words.slice(0, index + 1).join('.'));
}
