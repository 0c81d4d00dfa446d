import { readFileSync } from 'node:fs';

/** `texts` is a list of any length, as it is; only the last argument can be one. */
export type ArgType = 'string' | 'number' | 'json' | 'texts';
export type Args = Readonly<Record<string, ArgType>>;

/** The tables whose members a script may name without having made them. */
export type LuaTable = 'keys' | 'args' | 'ctx' | 'const' | 'key';

const INCLUDE = /^--\s*@include\s+(\S+)\s*$/gm;

/** A Lua file with its fragments, included once each, wherever they are first named. */
export function readLua(file: URL, seen = new Set<string>()): string {
  if (seen.has(file.href)) return '';
  seen.add(file.href);
  return readFileSync(file, 'utf8').replace(INCLUDE, (_, relative: string) => readLua(new URL(relative, file), seen));
}

/** Comments and texts in one pass: either may hold what begins the other. What is left is code. */
const COMMENT_OR_TEXT = /--\[\[[\s\S]*?\]\]|--.*|\[\[[\s\S]*?\]\]|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/;
const NAME = /(?<![\w.])(keys|args|ctx|const|key)\.(\w+)/;
const COMMENT_TEXT_OR_NAME = new RegExp(`${COMMENT_OR_TEXT.source}|${NAME.source}`, 'g');

/** Which members of a table the code names. */
export function namesIn(lua: string): (table: LuaTable) => string[] {
  const named = [...lua.matchAll(COMMENT_TEXT_OR_NAME)].filter(([, table]) => table);
  return (table) => [...new Set(named.filter((match) => match[1] === table).map((match) => match[2] as string))];
}

/**
 * Puts the text of a key where the code asks for it: `key.taskLock(task)` is sent as `('ade:lock:task:' .. task)`. Making the
 * builders anew in each call would cost more than all their uses.
 */
export function withKeys(lua: string, spell: (name: string, parts: readonly string[]) => string): string {
  let sent = '';
  let at = 0;
  for (const match of lua.matchAll(COMMENT_TEXT_OR_NAME)) {
    const [found, table, name] = match;
    const open = match.index + found.length;
    if (table !== 'key' || lua[open] !== '(' || match.index < at) continue;
    const { parts, end } = argumentsAt(lua, open);
    sent +=
      lua.slice(at, match.index) +
      spell(
        name as string,
        parts.map((part) => withKeys(part, spell)),
      );
    at = end;
  }
  return sent + lua.slice(at);
}

const TEXT_OR_PUNCTUATION = new RegExp(`${COMMENT_OR_TEXT.source}|[()\\[\\]{},]`, 'g');

/** What stands between the bracket at `open` and the one that closes it, parted at its commas. */
function argumentsAt(lua: string, open: number): { parts: string[]; end: number } {
  const parts: string[] = [];
  let depth = 0;
  let from = open + 1;
  TEXT_OR_PUNCTUATION.lastIndex = open;
  for (let match = TEXT_OR_PUNCTUATION.exec(lua); match; match = TEXT_OR_PUNCTUATION.exec(lua)) {
    const [mark] = match;
    if (mark === '(' || mark === '[' || mark === '{') depth++;
    else if (mark === ')' || mark === ']' || mark === '}') depth--;
    if ((mark === ',' && depth === 1) || depth === 0) {
      parts.push(lua.slice(from, match.index).trim());
      from = match.index + 1;
    }
    if (depth === 0) return { parts: parts.filter((part) => part !== ''), end: from };
  }
  throw new Error(`a bracket is not closed: ${lua.slice(open, open + 80)}`);
}

/** What a script declared, in the order in which the call gives it. */
export interface Declared {
  readonly keys: readonly string[];
  readonly keyList?: string;
  readonly args: Args;
  /** What to take for an argument that the call left out. */
  readonly defaults?: Readonly<Record<string, number | string | undefined>>;
  /** What of its surroundings is given with each call. */
  readonly context: Args;
  /** And what stands in the text. */
  readonly surroundings?: Readonly<Record<string, number | string>>;
  readonly constants?: Readonly<Record<string, unknown>>;
}

/**
 * Turns names into positions, so that no file ever says KEYS[12], and no call pays for tables of names: `args.agent` is
 * sent as `ARGV[4]`, and a constant number or text as itself. What a call leaves out is put in its place first. Numbers and JSON that are given are decoded where they stand, before
 * anything else runs.
 */
export function byPosition(lua: string, declared: Declared): readonly string[] {
  const places = placesOf(declared);
  const body = lua.replace(COMMENT_TEXT_OR_NAME, (found: string, table?: string) =>
    table === undefined ? found : (places.get(found) ?? found),
  );
  return [...decoding(declared), body];
}

const KEY_LIST = 'key_list';

function placesOf({ keys, keyList, constants = {}, surroundings = {}, ...given }: Declared): Map<string, string> {
  return new Map([
    ...keys.map((name, at): [string, string] => [`keys.${name}`, `KEYS[${at + 1}]`]),
    ...(keyList ? [[`keys.${keyList}`, keys.length === 0 ? 'KEYS' : KEY_LIST] as [string, string]] : []),
    ...argumentsOf(given).map(({ name, value }): [string, string] => [name, value]),
    ...Object.entries(surroundings).map(([name, value]): [string, string] => [`ctx.${name}`, literal(value)]),
    ...Object.entries(constants).flatMap(([name, value]): [string, string][] =>
      isPlain(value) ? [[`const.${name}`, literal(value)]] : [],
    ),
  ]);
}

const DECODER = { number: 'tonumber', json: 'cjson.decode' } as const;

interface Argument {
  readonly name: string;
  /** What the code says instead of the name. */
  readonly value: string;
  /** What must run before. */
  readonly before?: string;
}

/** What surrounds a script comes before its own arguments, so that the last of those can be left out. */
function argumentsOf({ args, defaults = {}, context }: Pick<Declared, 'args' | 'defaults' | 'context'>): Argument[] {
  const around = Object.entries(context).map(([word, type]) => ({ name: `ctx.${word}`, type, usual: undefined }));
  const own = Object.entries(args).map(([word, type]) => ({ name: `args.${word}`, type, usual: defaults[word] }));
  return [...around, ...own].map(({ name, type, usual }, at) => {
    const place = `ARGV[${at + 1}]`;
    if (type === 'texts') {
      const value = name.replace('.', '_');
      return { name, value, before: `local ${value} = { unpack(ARGV, ${at + 1}) }` };
    }
    if (type === 'string') return { name, value: usual === undefined ? place : `(${place} or ${literal(usual)})` };
    const decoded = `${DECODER[type]}(${place})`;
    if (usual === undefined) return { name, value: place, before: `${place} = ${decoded}` };
    const value = name.replace('.', '_');
    return { name, value, before: `local ${value} = ${place} and ${decoded} or ${literal(usual)}` };
  });
}

function decoding({ keys, keyList, constants = {}, ...given }: Declared): string[] {
  return [
    ...argumentsOf(given).flatMap(({ before = [] }) => before),
    ...(keyList && keys.length > 0 ? [`local ${KEY_LIST} = { unpack(KEYS, ${keys.length + 1}) }`] : []),
    ...(Object.values(constants).some((value) => !isPlain(value))
      ? [`local const = cjson.decode([==[${jsonForLua(constants)}]==])`]
      : []),
  ];
}

/** JSON has an equals sign only inside its texts; spelt otherwise there, nothing can close the long bracket. */
const jsonForLua = (value: unknown): string => JSON.stringify(value).replaceAll('=', '\\u003d');

const isPlain = (value: unknown): value is number | string => typeof value === 'number' || typeof value === 'string';

/** As Lua reads it back: every byte of a text that might mean something there is spelt as its number. */
function literal(value: number | string): string {
  if (typeof value === 'number') return `(${value})`;
  const bytes = [...Buffer.from(value)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[\w :.|-]/.test(character) ? character : `\\${String(byte).padStart(3, '0')}`;
  });
  return `'${bytes.join('')}'`;
}
