import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { actorText } from '../actor.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Connection } from './connection.ts';
import { redisFailure } from './failure.ts';
import { KEY_TABLE, type KeyName, type KeyspaceOptions, luaKeyspace } from './keys.ts';

type ArgType = 'string' | 'number' | 'json';
type ArgValue<T extends ArgType> = T extends 'string' ? string : T extends 'number' ? number : unknown;
type Args = Readonly<Record<string, ArgType>>;

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
  readonly usesContext: boolean;
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
const CONTEXT = { shift_us: 'number', keep: 'string', source: 'string', actor: 'string' } as const satisfies Record<
  keyof ScriptContext,
  ArgType
>;

const DECODE: Record<ArgType, (position: number) => string> = {
  string: (n) => `ARGV[${n}]`,
  number: (n) => `tonumber(ARGV[${n}])`,
  json: (n) => `cjson.decode(ARGV[${n}])`,
};

/** Declares a script. A name that its Lua uses and nobody declared is refused here, at load, not in production. */
export function defineScript<const K extends string, const A extends Args, R, const L extends string = never>(
  spec: ScriptSpec<K, L, A, R>,
): Script<K, L, A, R> {
  const body = inline(spec.file);
  const name = spec.file.pathname.split('/').slice(-1)[0] as string;
  const code = withoutCommentsAndTexts(body);
  const used = (table: string) => [
    ...new Set([...code.matchAll(new RegExp(`(?<![\\w.])${table}\\.(\\w+)`, 'g'))].map((match) => match[1] as string)),
  ];
  const refuseUnknown = (table: string, known: readonly string[]) => {
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
  const usesContext = asked.length > 0;
  const names = prelude(spec, context);
  const sources = new WeakMap<Variant, { lua: string; sha: string }>();
  return {
    ...spec,
    name,
    context,
    usesContext,
    source(variant) {
      let source = sources.get(variant);
      if (!source) {
        const builders = luaKeyspace(variant.keyspace, used('key') as KeyName[]);
        const lua = [...(variant.shebang ? ['#!lua'] : []), ...names, builders, body].join('\n');
        source = { lua, sha: createHash('sha1').update(lua).digest('hex') };
        sources.set(variant, source);
      }
      return source;
    },
  };
}

/** Turns positions into names, so that no script ever says KEYS[12]. */
function prelude(spec: ScriptSpec<string, string, Args, unknown>, context: Args): string[] {
  const fields = (entries: readonly [string, string][]) =>
    entries.map(([name, value]) => `${name} = ${value}`).join(', ');
  const decoded = (args: Args, from: number) =>
    Object.entries(args).map(([name, type], index): [string, string] => [name, DECODE[type](from + index + 1)]);
  const single = spec.keys.map((name, index): [string, string] => [name, `KEYS[${index + 1}]`]);
  const rest = spec.keys.length === 0 ? 'KEYS' : `{ unpack(KEYS, ${spec.keys.length + 1}) }`;
  const list: [string, string][] = spec.keyList ? [[spec.keyList, rest]] : [];
  return [
    `local keys = { ${fields([...single, ...list])} }`,
    `local args = { ${fields(decoded(spec.args, 0))} }`,
    ...(Object.keys(context).length > 0
      ? [`local ctx = { ${fields(decoded(context, Object.keys(spec.args).length))} }`]
      : []),
    ...(spec.constants ? [`local const = cjson.decode([==[${jsonForLua(spec.constants)}]==])`] : []),
  ];
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
  ): Promise<R>;
}

export interface ScriptsOptions {
  readonly connection: Connection;
  readonly keyspace: KeyspaceOptions;
  /** Asked on each run. */
  readonly context: () => Omit<ScriptContext, 'actor'>;
}

/** A script is called by its hash; its text is sent only when Redis does not know it (first call, restart, failover). */
export function createScripts({ connection, keyspace, context }: ScriptsOptions): Scripts {
  const variants = [false, true].map((shebang): Variant => ({ keyspace, shebang }));
  return {
    async run(script, keys, args) {
      const { lua, sha } = script.source(variants[Number(connection.server.major >= 7)] as Variant);
      const named: Readonly<Record<string, string | readonly string[]>> = keys;
      const given: (string | number)[] = script.keys.map((name) => named[name] as string);
      if (script.keyList) given.push(...(named[script.keyList] as readonly string[]));
      const count = given.length;
      encode(script.args, args, given);
      if (script.usesContext) encode(script.context, { ...context(), actor: actorText() }, given);
      const redis = connection.commands;
      try {
        const raw = await redis.evalsha(sha, count, ...given).catch((error: unknown) => {
          if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return redis.eval(lua, count, ...given);
          throw error;
        });
        return decodedReply(script, raw);
      } catch (error) {
        throw redisFailure(error, connection.address) ?? error;
      }
    },
  };
}

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

const INCLUDE = /^--\s*@include\s+(\S+)\s*$/gm;

/** Fragments are included once each, wherever they are first named. */
function inline(file: URL, seen = new Set<string>()): string {
  if (seen.has(file.href)) return '';
  seen.add(file.href);
  return readFileSync(file, 'utf8').replace(INCLUDE, (_, relative: string) => inline(new URL(relative, file), seen));
}

/** JSON has an equals sign only inside its texts; spelt otherwise there, nothing can close the long bracket. */
const jsonForLua = (value: unknown): string => JSON.stringify(value).replaceAll('=', '\\u003d');

/** Comments and texts in one pass: either may hold what begins the other. */
const COMMENT_OR_TEXT = /--\[\[[\s\S]*?\]\]|--.*|\[\[[\s\S]*?\]\]|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g;
const withoutCommentsAndTexts = (lua: string): string => lua.replace(COMMENT_OR_TEXT, "''");
