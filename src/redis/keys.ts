import { DEFAULT_PROJECT, ID_RULES, type IdKind, invalidId, isId, parseId, type Unchecked } from './ids.ts';
import { KEY_NAMES, KEY_TABLE, type KeyMode, type KeyName, type KeyRow, spelling } from './key-table.ts';

export { KEY_NAMES, KEY_TABLE, type KeyName } from './key-table.ts';

export interface KeyspaceOptions {
  /** Cluster spells names with hash tags. Going from one mode to the other is a migration of data. */
  readonly mode: KeyMode;
  /** Head of the work queue's keys. */
  readonly project?: string;
  /** Which set of assets; none is the one with the prescribed plain names. */
  readonly namespace?: string;
}

/** One builder per row; its parameters are the variables of the row's pattern. */
export type Keyspace = { readonly [N in KeyName]: (...parts: Parts<Open<(typeof KEY_TABLE)[N]['pattern']>>) => string };

/** Builders that spell keys. A part that breaks the rule of its kind is refused before anything reaches Redis. */
export function keyspace(options: KeyspaceOptions): Keyspace {
  return Object.fromEntries(KEY_NAMES.map((name) => [name, builder(name, options)])) as Keyspace;
}

/**
 * The same builders as Lua source, for the few names a script asks for: `key.taskLock(task)`.
 * They join, they do not check: a script checks what it read from elsewhere before it makes a key of it.
 */
export function luaKeyspace(options: KeyspaceOptions, names: readonly KeyName[]): string {
  const define = (name: KeyName) => {
    const body = pieces(name, options).map((piece) => (typeof piece === 'string' ? `'${piece}'` : luaText(piece)));
    return `key.${name} = function(${params(name).join(', ')}) return ${body.join(' .. ')} end`;
  };
  return ['local key = {}', ...names.map(define)].join('\n');
}

/** One of these keys as an expression in Lua, its parts being expressions themselves. */
export function luaKey(options: KeyspaceOptions, name: KeyName, parts: readonly string[]): string {
  const kinds = params(name);
  if (parts.length !== kinds.length) throw new Error(`key.${name} takes ${kinds.join(', ') || 'nothing'}`);
  const given = (piece: Variable) => bracketed(parts[kinds.indexOf(piece.kind)]!);
  const texts = pieces(name, options).map((piece) =>
    typeof piece === 'string' ? `'${piece}'` : luaText(piece, given(piece)),
  );
  return texts.length === 1 ? texts[0]! : `(${texts.join(' .. ')})`;
}
const bracketed = (lua: string) => (/^[\w.]+$|^'[^'\\]*'$/.test(lua) ? lua : `(${lua})`);

export interface ExplainedKey {
  readonly name: KeyName;
  readonly parts: Readonly<Record<string, string>>;
}

/** Which row a key belongs to, and the ids in it. The rows are such that no key belongs to two. */
export const explainKey = (key: string, options: KeyspaceOptions): ExplainedKey | undefined => keyReader(options)(key);

/** explainKey() for many keys. */
export function keyReader(options: KeyspaceOptions): (key: string) => ExplainedKey | undefined {
  const readers = KEY_NAMES.map((name) => reader(name, options));
  return (key) => {
    for (const read of readers) {
      const explained = read(key);
      if (explained) return explained;
    }
    return undefined;
  };
}

type Open<P extends string> = P extends `<project>:${infer Rest}` ? Rest : P;
type Parts<P extends string> = P extends `${string}<${infer K extends IdKind}>${infer Rest}`
  ? [...Labels[K], ...Parts<Rest>]
  : [];
/** Only so that editors show `taskLock(task)`: a kind without a label works, too. */
interface Labels extends Unlabelled {
  task: [task: Unchecked<'task'>];
  agent: [agent: Unchecked<'agent'>];
  user: [user: Unchecked<'user'>];
  policy: [policy: Unchecked<'policy'>];
  session: [session: Unchecked<'session'>];
  job: [job: Unchecked<'job'>];
  approval: [approval: Unchecked<'approval'>];
  asset: [asset: Unchecked<'asset'>];
  project: [project: Unchecked<'project'>];
  resourceType: [resourceType: Unchecked<'resourceType'>];
  resource: [resource: Unchecked<'resource'>];
  agentType: [agentType: Unchecked<'agentType'>];
  endpoint: [endpoint: Unchecked<'endpoint'>];
  state: [state: Unchecked<'state'>];
  generation: [generation: Unchecked<'generation'>];
  word: [word: Unchecked<'word'>];
}
type Unlabelled = { [K in IdKind]: [Unchecked<K>] };

/** A key is literal text and variables in turn. A half is one side of an approval id, parted at its last dot. */
type Half = 'task' | 'number';
interface Variable {
  readonly kind: IdKind;
  readonly half?: Half;
}
const HALF = {
  task: { form: ID_RULES.task.form, lua: '^(.*)%.%d+$' },
  number: { form: '[0-9]{1,9}', lua: '%.(%d+)$' },
} as const;
const HALVES = new RegExp(`^(${HALF.task.form})\\.(${HALF.number.form})$`);
const VARIABLE = /<(\w+)(?:\.(\w+))?>/;

function builder(name: KeyName, options: KeyspaceOptions) {
  const kinds = params(name);
  const parts = pieces(name, options);
  const [variable, ...more] = parts.filter((part) => typeof part !== 'string');
  if (variable && more.length === 0 && !variable.half) return aroundOneId(variable.kind, parts);
  return (...values: readonly string[]) => {
    const ids = kinds.map((kind, at) => parseId(kind, values[at]));
    return parts.map((part) => (typeof part === 'string' ? part : text(part, ids[kinds.indexOf(part.kind)]!))).join('');
  };
}

/** Most keys are some text around one id, and are spelt with every call. */
function aroundOneId(kind: IdKind, parts: readonly (string | Variable)[]) {
  const at = parts.findIndex((part) => typeof part !== 'string');
  const literal = (part: string | Variable | undefined) => (typeof part === 'string' ? part : '');
  const [head, tail] = [literal(parts[at - 1]), literal(parts[at + 1])];
  return (value: string) => head + parseId(kind, value) + tail;
}

function reader(name: KeyName, options: KeyspaceOptions) {
  const parts = pieces(name, options);
  const variables = parts.filter((part) => typeof part !== 'string');
  const form = new RegExp(
    `^${parts.map((part) => (typeof part === 'string' ? escaped(part) : `(${formOf(part)})`)).join('')}$`,
  );
  return (key: string): ExplainedKey | undefined => {
    const found = form.exec(key);
    if (!found) return undefined;
    const ids: Partial<Record<IdKind, string>> = {};
    variables.forEach(({ kind }, at) => {
      ids[kind] = ids[kind] === undefined ? found[at + 1]! : `${ids[kind]}.${found[at + 1]}`;
    });
    const isWhole = Object.entries(ids).every(([kind, id]) => isId(kind as IdKind, id));
    return isWhole ? { name, parts: ids } : undefined;
  };
}

/** The variables a caller fills in; a project at the head is filled in when the keyspace is made. */
function params(name: KeyName): IdKind[] {
  const pattern = KEY_TABLE[name].pattern.replace(/^<project>/, '');
  return pattern.split(VARIABLE).filter((_, at) => at % 3 === 1) as IdKind[];
}

function pieces(name: KeyName, options: KeyspaceOptions): (string | Variable)[] {
  const split = bind(KEY_TABLE[name], options).split(VARIABLE);
  const found: (string | Variable)[] = [];
  for (let at = 0; at < split.length; at += 3) {
    if (split[at]) found.push(split[at]!);
    if (at + 1 < split.length) found.push({ kind: split[at + 1] as IdKind, half: split[at + 2] as Half | undefined });
  }
  return found;
}

function bind(row: KeyRow, { mode, project = DEFAULT_PROJECT, namespace }: KeyspaceOptions): string {
  const pattern = spelling(row, mode);
  if (row.slot === 'project') return pattern.replace('<project>', parseId('project', project));
  if (row.slot === 'asset' && namespace !== undefined) {
    const id = parseId('namespace', namespace);
    return pattern.replace('asset', mode === 'cluster' ? `asset:${id}` : `asset:ns:${id}`);
  }
  return pattern;
}

function text({ kind, half }: Variable, id: string): string {
  if (!half) return id;
  const halves = HALVES.exec(id);
  if (!halves || !isId('task', halves[1])) throw invalidId(kind, id);
  return halves[half === 'task' ? 1 : 2]!;
}

const luaText = ({ kind, half }: Variable, value: string = kind) =>
  half ? `string.match(${value}, '${HALF[half].lua}')` : value;
const formOf = ({ kind, half }: Variable) => (half ? HALF[half].form : ID_RULES[kind].form);
const escaped = (literal: string) => literal.replace(/[{}.]/g, '\\$&');
