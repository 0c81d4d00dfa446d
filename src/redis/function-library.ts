import { createHash } from 'node:crypto';
import type { KeyspaceOptions } from './keys.ts';
import { type AnyScript, luaFragment, type ScriptSurroundings, scriptAsFunction } from './script.ts';

/** Redis Functions: Lua that stays in the server (since Redis 7) and is called by name, so that redis-cli is enough. */
export interface LibrarySpec {
  /** The name of the library, and what the names of its functions begin with. */
  readonly name: string;
  readonly prefix: string;
  /** What registers the functions. It finds `call.NAME { … }` for each script, `terms` and `prefix`. */
  readonly file: URL;
  readonly scripts: Readonly<Record<string, AnyScript>>;
  /** What the functions must know that nobody tells them: `terms.…` in Lua. */
  readonly terms: Readonly<Record<string, unknown>>;
  readonly keyspace: KeyspaceOptions;
  readonly context: ScriptSurroundings;
}

export interface Library {
  readonly name: string;
  readonly code: string;
  /** Names exactly this text: `terms.digest` in Lua. */
  readonly digest: string;
}

export function functionLibrary({ name, prefix, file, scripts, terms, keyspace, context }: LibrarySpec): Library {
  const parts = (digest: string) => [
    `#!lua name=${name}`,
    `local prefix = '${prefix}'`,
    `local terms = ${luaLiteral({ ...terms, digest })}`,
    'local call = {}',
    ...Object.entries(scripts).map(([word, script]) => `call.${word} = ${scriptAsFunction(script, keyspace, context)}`),
    luaFragment(file, keyspace),
  ];
  const digest = createHash('sha256').update(parts('').join('\n')).digest('hex').slice(0, 12);
  return { name, digest, code: parts(digest).join('\n') };
}

/** JSON as Lua: while a library is loaded nothing may be decoded yet. */
function luaLiteral(value: unknown): string {
  if (Array.isArray(value)) return `{ ${value.map(luaLiteral).join(', ')} }`;
  if (typeof value === 'object' && value !== null) {
    return `{ ${Object.entries(value)
      .map(([name, one]) => `[${luaText(name)}] = ${luaLiteral(one)}`)
      .join(', ')} }`;
  }
  return typeof value === 'string' ? luaText(value) : String(value);
}

/** Every byte that is no plain letter, digit or space as its number: nothing can end the text early. */
const luaText = (text: string): string =>
  `'${[...Buffer.from(text)].map((byte) => (/[A-Za-z0-9 ]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`)).join('')}'`;
