import { existsSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { type Environment, type Flags, fromEnvironment, fromFile, fromFlags, type Layer } from './config-layers.ts';
import { ReeveError } from './errors.ts';
import { maskUrl } from './log.ts';
import { type Config, listSettings, SETTINGS, type Setting } from './settings.ts';

export type { Config } from './settings.ts';

export interface Given {
  readonly flags?: Flags;
  readonly env?: Environment;
  readonly cwd?: string;
}

export interface Loaded {
  readonly config: Config;
  /** For each setting, where its value came from: 'default', 'reeve.yaml:3', 'environment REDIS_URL', 'flag --http-port'. */
  readonly sources: Readonly<Record<string, string>>;
  readonly file: string | undefined;
}

/** Reads flags, environment, file and defaults, in this order of precedence, and reports every problem at once. */
export function loadConfig({ flags = {}, env = process.env, cwd = process.cwd() }: Given = {}): Loaded {
  const settings = listSettings();
  const problems: string[] = [];
  const file = configFile(flags, env, cwd);
  const layers = [
    fromFlags(settings, flags, cwd),
    fromEnvironment(settings, env, cwd, problems),
    file ? fromFile(settings, file, problems) : (new Map() as Layer),
  ];
  const { tree, sources } = merge(settings, layers);
  const parsed = SETTINGS.safeParse(tree);
  for (const issue of parsed.error?.issues ?? []) {
    const name = issue.path.join('.');
    problems.push(`${name}: ${issue.message} (${sources[name] ?? 'default'})`);
  }
  if (problems.length > 0 || !parsed.success) {
    throw new ReeveError('CONFIG_INVALID', { problems: problems.map((line) => `  ${line}`).join('\n') });
  }
  const config = resolvePaths(settings, layers, parsed.data, cwd, env);
  return { config: deepFreeze(config), sources, file };
}

/** The configuration with every secret hidden, safe to print anywhere. */
export function maskedConfig(config: Config): unknown {
  const copy = structuredClone(config) as Record<string, unknown>;
  for (const { name, secret } of listSettings()) {
    const value = at(copy, name);
    if (secret && typeof value === 'string') put(copy, name, secret === 'url' ? maskUrl(value) : '***');
  }
  // The entries of a list have no names of their own in the table.
  for (const source of (copy.assets as { sources: Record<string, unknown>[] }).sources) {
    for (const name of ['token', 'webhookSecret']) if (source[name]) source[name] = '***';
  }
  return copy;
}

function configFile(flags: Flags, env: Environment, cwd: string) {
  const named = flags.config ?? env.REEVE_CONFIG;
  if (typeof named === 'string' && named !== '') return resolve(cwd, named);
  const usual = join(cwd, 'reeve.yaml');
  return existsSync(usual) ? usual : undefined;
}

function merge(settings: readonly Setting[], layers: readonly Layer[]) {
  const tree: Record<string, unknown> = {};
  const sources: Record<string, string> = {};
  for (const { name } of settings) {
    const found = layers.map((layer) => layer.get(name)).find((entry) => entry !== undefined);
    sources[name] = found?.source ?? 'default';
    if (found) put(tree, name, found.value);
  }
  return { tree, sources };
}

function resolvePaths(
  settings: readonly Setting[],
  layers: readonly Layer[],
  parsed: object,
  cwd: string,
  env: Environment,
): Config {
  const tree = structuredClone(parsed) as Record<string, unknown>;
  for (const { name, path } of settings) {
    const value = at(tree, name);
    if (!path || typeof value !== 'string') continue;
    const base = layers.map((layer) => layer.get(name)).find((entry) => entry !== undefined)?.base ?? cwd;
    put(tree, name, resolve(base, value));
  }
  const named = layers.map((layer) => layer.get('assets.sources')).find((entry) => entry !== undefined);
  for (const source of (tree.assets as { sources: { git?: string; dir?: string }[] }).sources) {
    if (source.git) source.git = resolve(named?.base ?? cwd, source.git);
    if (source.dir) source.dir = resolve(named?.base ?? cwd, source.dir);
  }
  tree.cacheDir ??= join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'reeve');
  tree.instance ??= hostname();
  return tree as Config;
}

function at(tree: Record<string, unknown>, name: string): unknown {
  return name.split('.').reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], tree);
}

function put(tree: Record<string, unknown>, name: string, value: unknown): void {
  const keys = name.split('.');
  const last = keys.pop() as string;
  let node = tree;
  for (const key of keys) {
    node[key] ??= {};
    node = node[key] as Record<string, unknown>;
  }
  node[last] = value;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const child of Object.values(value)) deepFreeze(child);
    Object.freeze(value);
  }
  return value;
}
