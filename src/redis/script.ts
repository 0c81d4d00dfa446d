import { createHash } from 'node:crypto';
import { actorText } from '../actor.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Connection, RedisClient } from './connection.ts';
import { redisFailure } from './failure.ts';
import { KEY_TABLE, type KeyName, type KeyspaceOptions, luaKey, luaKeyspace } from './keys.ts';
import { type Args, type ArgType, byPosition, type LuaTable, namesIn, readLua, withKeys } from './script-text.ts';

type ArgValue<T extends ArgType> = T extends 'string' ? string : T extends 'number' ? number : unknown;

/** A Lua file, declared once: what it takes, by name, and what it answers. */
export interface ScriptSpec<K extends string, L extends string, A extends Args, R> {
  readonly file: URL;
  /** One key each: `keys.lock` in Lua. */
  readonly keys: readonly K[];
  /** At most one list of keys, of any length, after the single ones: `keys.resources[1]` in Lua. */
  readonly keyList?: L;
  /** `args.agent` in Lua; numbers and JSON arrive decoded. */
  readonly args: A;
  /** Tables that Lua and TypeScript share: `const.transitions` in Lua. */
  readonly constants?: Readonly<Record<string, unknown>>;
  /** Makes the answer a typed one; throws if it is none that the script should give. */
  readonly reply: (raw: unknown) => R;
}

export interface Script<K extends string, L extends string, A extends Args, R> extends ScriptSpec<K, L, A, R> {
  readonly name: string;
  /** What it asks of its surroundings; the rest is not sent. */
  readonly context: Args;
  source(variant: Variant): { readonly lua: string; readonly sha: string };
}

/** What changes a script's text from one Redis to another. */
interface Variant {
  readonly keyspace: KeyspaceOptions;
  /** Redis 7 checks declared keys only of scripts with this header; older servers do not know it. */
  readonly shebang: boolean;
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
  refuseUnknown('keys', [...spec.keys, ...(spec.keyList ? [spec.keyList] : [])]);
  refuseUnknown('args', Object.keys(spec.args));
  refuseUnknown('const', Object.keys(spec.constants ?? {}));
  refuseUnknown('ctx', Object.keys(CONTEXT));
  refuseUnknown('key', Object.keys(KEY_TABLE));

  const asked = used('ctx');
  const context = Object.fromEntries(Object.entries(CONTEXT).filter(([word]) => asked.includes(word)));
  const body = byPosition(lua, { ...spec, context });
  const sources = new WeakMap<Variant, { lua: string; sha: string }>();
  return {
    ...spec,
    name,
    context,
    source(variant) {
      let source = sources.get(variant);
      if (!source) {
        const spelt = withKeys(body.join('\n'), (name, parts) => luaKey(variant.keyspace, name as KeyName, parts));
        const text = [...(variant.shebang ? ['#!lua'] : []), spelt].join('\n');
        source = { lua: text, sha: createHash('sha1').update(text).digest('hex') };
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
  const given = Object.entries(script.args).map(([name, type]) =>
    type === 'json' ? `cjson.encode(${wanted(name)})` : wanted(name),
  );
  const around = Object.keys(script.context).map((name) =>
    name === 'actor' ? wanted(name) : `[==[${context[name as keyof ScriptSurroundings]}]==]`,
  );
  const { lua } = script.source({ keyspace, shebang: false });
  return [
    '(function()',
    "local function wanted(value, script, name) return value == nil and error(script .. ': no ' .. name) or value end",
    `local function run(KEYS, ARGV)\n${lua}\nend`,
    `return function(named) return run({}, { ${[...given, ...around].join(', ')} }) end`,
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
  const variants = [false, true].map((shebang): Variant => ({ keyspace, shebang }));
  return {
    async run(script, keys, args, redis = connection.commands) {
      const { lua, sha } = script.source(variants[Number(connection.server.major >= 7)] as Variant);
      const named: Readonly<Record<string, string | readonly string[]>> = keys;
      const given: (string | number)[] = [];
      for (const name of script.keys) given.push(named[name] as string);
      if (script.keyList) given.push(...(named[script.keyList] as readonly string[]));
      const count = given.length;
      encode(script.args, args, given);
      surroundings(script.context, context, given);
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

const isUnknownScript = (error: unknown): boolean => error instanceof Error && error.message.startsWith('NOSCRIPT');

function decodedReply<R>(script: { readonly name: string; readonly reply: (raw: unknown) => R }, raw: unknown): R {
  try {
    return script.reply(raw);
  } catch (error) {
    throw new ReeveError('SCRIPT_REPLY_INVALID', { script: script.name, problem: reason(error) }, { cause: error });
  }
}

/** Adds the values in the order of their types. Runs with every call, so it makes no lists on its way. */
function encode(types: Args, values: object, to: (string | number)[]): void {
  const byName = values as Readonly<Record<string, unknown>>;
  for (const name in types) {
    const value = byName[name];
    to.push(types[name] === 'json' ? JSON.stringify(value) : (value as string | number));
  }
}

/** Adds what a script asks of its surroundings. */
function surroundings(asked: Args, context: ScriptsOptions['context'], to: (string | number)[]): void {
  const known = context();
  for (const name in asked) to.push(name === 'actor' ? actorText() : known[name as keyof typeof known]);
}
