import { createHash } from 'node:crypto';
import { actorText } from '../actor.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Connection, RedisClient } from './connection.ts';
import { redisFailure } from './failure.ts';
import { KEY_TABLE, type KeyName, type KeyspaceOptions, luaKey, luaKeyspace } from './keys.ts';
import { type Args, type ArgType, byPosition, type LuaTable, namesIn, readLua, withKeys } from './script-text.ts';

interface ArgValues {
  readonly string: string;
  readonly number: number;
  readonly json: unknown;
  readonly texts: readonly string[];
}
type ArgValue<T extends ArgType> = ArgValues[T];

/** A Lua file, declared once: what it takes, by name, and what it answers. */
export interface ScriptSpec<K extends string, L extends string, A extends Args, R> {
  readonly file: URL;
  /** One key each: `keys.lock` in Lua. */
  readonly keys: readonly K[];
  /** At most one list of keys, of any length, after the single ones: `keys.resources[1]` in Lua. */
  readonly keyList?: L;
  /** `args.agent` in Lua; numbers and JSON arrive decoded, a list of texts as a table. */
  readonly args: A;
  /** What the last of the arguments usually are: those that are just that are not sent. */
  readonly defaults?: { readonly [N in keyof A]?: string | number };
  /** Tables that Lua and TypeScript share: `const.transitions` in Lua. */
  readonly constants?: Readonly<Record<string, unknown>>;
  /** Makes the answer a typed one; throws if it is none that the script should give. */
  readonly reply: (raw: unknown) => R;
}

export interface Script<K extends string, L extends string, A extends Args, R> extends ScriptSpec<K, L, A, R> {
  readonly name: string;
  source(variant: Variant): Source;
}

/** A script as it is sent. */
export interface Source {
  readonly lua: string;
  readonly sha: string;
  /** What of its surroundings each call must give, before the arguments. */
  readonly asks: readonly (keyof ScriptContext)[];
}

/** What changes a script's text from one Redis to another. */
interface Variant {
  readonly keyspace: KeyspaceOptions;
  /** Redis 7 checks declared keys only of scripts with this header; older servers do not know it. */
  readonly shebang: boolean;
  /** What stays the same from call to call, and so stands in the text; without it, each call gives all. */
  readonly surroundings?: Partial<ScriptSurroundings>;
}

/** What every script may ask of its surroundings: `ctx.shift_us` and the like in Lua. */
export interface ScriptContext {
  /** Added to the Redis server's clock. Zero but in tests, which move time by it. */
  readonly shift_us: number;
  /** About how many entries an event stream keeps. */
  readonly keep: number;
  /** Which daemon writes: the `source` of events. */
  readonly source: string;
  /** On whose behalf, from where and why, as JSON: the `actor` of audit rows. */
  readonly actor: string;
}
/** What of it does not depend on who calls. */
export type ScriptSurroundings = Omit<ScriptContext, 'actor'>;
const CONTEXT = { shift_us: 'number', keep: 'string', source: 'string', actor: 'string' } as const satisfies Record<
  keyof ScriptContext,
  ArgType
>;

/** Declares a script. A name that its Lua uses and nobody declared is refused here, at load, not in production. */
export function defineScript<const K extends string, const A extends Args, R, const L extends string = never>(
  spec: ScriptSpec<K, L, A, R>,
): Script<K, L, A, R> {
  const name = spec.file.pathname.split('/').slice(-1)[0] as string;
  const lua = readLua(spec.file);
  const used = namesIn(lua);
  const refuseUnknown = (table: LuaTable, known: readonly string[]) => {
    const unknown = used(table).filter((word) => !known.includes(word));
    if (unknown.length > 0)
      throw new Error(`${name}: undeclared ${unknown.map((word) => `${table}.${word}`).join(', ')}`);
  };
  if (Object.values(spec.args).slice(0, -1).includes('texts')) throw new Error(`${name}: a list of texts comes last`);
  refuseUnknown('keys', [...spec.keys, ...(spec.keyList ? [spec.keyList] : [])]);
  refuseUnknown('args', Object.keys(spec.args));
  refuseUnknown('const', Object.keys(spec.constants ?? {}));
  refuseUnknown('ctx', Object.keys(CONTEXT));
  refuseUnknown('key', Object.keys(KEY_TABLE));

  const asked = used('ctx') as (keyof ScriptContext)[];
  const sources = new WeakMap<Variant, Source>();
  const make = ({ keyspace, shebang, surroundings = {} }: Variant): Source => {
    const stands = { ...surroundings, ...(surroundings.keep && { keep: String(surroundings.keep) }) };
    const asks = asked.filter((word) => !(word in stands));
    const context = Object.fromEntries(asks.map((word) => [word, CONTEXT[word]]));
    const body = byPosition(lua, { ...spec, context, surroundings: stands }).join('\n');
    const spelt = withKeys(body, (name, parts) => luaKey(keyspace, name as KeyName, parts));
    const text = shebang ? `#!lua\n${spelt}` : spelt;
    return { lua: text, sha: createHash('sha1').update(text).digest('hex'), asks };
  };
  return {
    ...spec,
    name,
    source(variant) {
      let source = sources.get(variant);
      if (!source) {
        source = make(variant);
        sources.set(variant, source);
      }
      return source;
    },
  };
}

/** A script of whatever form. */
export type AnyScript = Script<string, string, Args, unknown>;

/** The script as a Lua function that takes its arguments by name, for those who call it from Lua. They name the actor, too. */
export function scriptAsFunction(script: AnyScript, keyspace: KeyspaceOptions, context: ScriptSurroundings): string {
  const wanted = (name: string) => `wanted(named.${name}, '${script.name}', '${name}')`;
  const WRITTEN = { string: '', number: '', json: 'cjson.encode', texts: 'unpack' } as const;
  const given = Object.entries(script.args).map(([name, type]) => `${WRITTEN[type]}(${wanted(name)})`);
  const { lua, asks } = script.source({ keyspace, shebang: false, surroundings: context });
  return [
    '(function()',
    "local function wanted(value, script, name) return value == nil and error(script .. ': no ' .. name) or value end",
    `local function run(KEYS, ARGV)\n${lua}\nend`,
    `return function(named) return run({}, { ${[...asks.map(wanted), ...given].join(', ')} }) end`,
    'end)()',
  ].join('\n');
}

/** A piece of Lua that is no script of its own, with its fragments and the builders of the keys it names. */
export function luaFragment(file: URL, keyspace: KeyspaceOptions): string {
  const lua = readLua(file);
  return [luaKeyspace(keyspace, namesIn(lua)('key') as KeyName[]), lua].join('\n');
}

type Keys<K extends string, L extends string> = { readonly [N in K]: string } & {
  readonly [N in L]: readonly string[];
};

/** Runs declared scripts on one Redis. */
export interface Scripts {
  run<K extends string, L extends string, A extends Args, R>(
    script: Script<K, L, A, R>,
    keys: Keys<K, L>,
    args: { readonly [N in keyof A]: ArgValue<A[N]> },
    /** On a client that was lent, rather than beside everyone else's commands. */
    on?: RedisClient,
  ): Promise<R>;
}

export interface ScriptsOptions {
  readonly connection: Connection;
  readonly keyspace: KeyspaceOptions;
  /** Asked on each run. */
  readonly context: () => ScriptSurroundings;
}

/** A script is called by its hash; its text is sent only when Redis does not know it (first call, restart, failover). */
export function createScripts({ connection, keyspace, context }: ScriptsOptions): Scripts {
  const variants = new Variants(keyspace);
  return {
    async run(script, keys, args, redis = connection.commands) {
      const around = context();
      const { lua, sha, asks } = script.source(variants.of(around, connection.server.major >= 7));
      const named: Readonly<Record<string, string | readonly string[]>> = keys;
      const given: (string | number)[] = [];
      for (const name of script.keys) given.push(named[name] as string);
      if (script.keyList) given.push(...(named[script.keyList] as readonly string[]));
      const count = given.length;
      for (const name of asks) given.push(name === 'actor' ? actorText() : around[name]);
      encode(script, args, given);
      try {
        return decodedReply(script, await redis.evalsha(sha, count, ...given));
      } catch (error) {
        if (!isUnknownScript(error)) throw redisFailure(error, connection.address) ?? error;
      }
      try {
        return decodedReply(script, await redis.eval(lua, count, ...given));
      } catch (error) {
        throw redisFailure(error, connection.address) ?? error;
      }
    },
  };
}

/** Which text of a script to send. A clock that a test has moved is given with each call: its every move would be a new text. */
class Variants {
  readonly #keyspace: KeyspaceOptions;
  readonly #known: Variant[] = [];
  #last: Variant | undefined;

  constructor(keyspace: KeyspaceOptions) {
    this.#keyspace = keyspace;
  }

  of(around: ScriptSurroundings, shebang: boolean): Variant {
    if (this.#last && isFor(this.#last, around, shebang)) return this.#last;
    this.#last = this.#known.find((one) => isFor(one, around, shebang)) ?? this.#add(around, shebang);
    return this.#last;
  }

  #add({ shift_us, keep, source }: ScriptSurroundings, shebang: boolean): Variant {
    const surroundings = shift_us === 0 ? { shift_us, keep, source } : { keep, source };
    const added: Variant = { keyspace: this.#keyspace, shebang, surroundings };
    this.#known.push(added);
    return added;
  }
}

const isFor = ({ shebang, surroundings }: Variant, around: ScriptSurroundings, wanted: boolean): boolean =>
  shebang === wanted &&
  surroundings?.keep === around.keep &&
  surroundings.source === around.source &&
  (surroundings.shift_us === 0) === (around.shift_us === 0);

const isUnknownScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith('NOSCRIPT');

function decodedReply<R>(script: { readonly name: string; readonly reply: (raw: unknown) => R }, raw: unknown): R {
  try {
    return script.reply(raw);
  } catch (error) {
    throw new ReeveError('SCRIPT_REPLY_INVALID', { script: script.name, problem: reason(error) }, { cause: error });
  }
}

/** Half a character is no text, and Redis refuses its escape. Sent as text it would become this sign as well. */
function jsonFor(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes('\\ud') ? json.replace(LONE_SURROGATE, '$1\\ufffd') : json;
}
/** A character that is whole is not escaped, and a backslash that somebody wrote is escaped itself. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/** Adds the values in the order of their types, but not the last ones that are as usual. Runs with every call, so it makes no lists on its way. */
function encode(
  { args: types, defaults = {} }: Pick<AnyScript, 'args' | 'defaults'>,
  values: object,
  to: (string | number)[],
): void {
  const byName = values as Readonly<Record<string, unknown>>;
  let needed = to.length;
  for (const name in types) {
    const value = byName[name];
    if (types[name] === 'texts') for (const text of value as readonly string[]) to.push(text);
    else to.push(types[name] === 'json' ? jsonFor(value) : (value as string | number));
    if (value !== defaults[name]) needed = to.length;
  }
  to.length = needed;
}
