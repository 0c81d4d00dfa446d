import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { directoriesOf, findProgram, type ProgramEnv, runProgram } from './run-program.ts';

const TOOLS = ['apt-get', 'dpkg-deb', 'dpkg-query', 'ldd'] as const;
export type Tools = Readonly<Record<(typeof TOOLS)[number], string>>;

/** Where and with what the packages are taken apart. */
export interface Workshop {
  readonly tools: Tools;
  /** An empty directory, which the caller removes. */
  readonly work: string;
  readonly path: string;
  readonly env: ProgramEnv;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

export interface Unpacked {
  readonly root: string;
  readonly bytes: number;
}

/** All of them are part of any Debian or Ubuntu; elsewhere this says what is missing. */
export async function findTools(path: string): Promise<Tools> {
  const found = await Promise.all(TOOLS.map(async (name) => [name, await findProgram(name, directoriesOf(path))]));
  const missing = found.filter(([, file]) => !file).map(([name]) => name);
  if (missing.length > 0) throw new Error(`a private copy needs ${missing.join(', ')}, not on this system`);
  return Object.fromEntries(found) as Tools;
}

/**
 * Unpacks a server with the libraries this system lacks. The system's package lists are used first, for they cost
 * nothing; fresh private ones where those are missing or outdated.
 */
export async function unpackServer(shop: Workshop): Promise<Unpacked> {
  const failures: string[] = [];
  const survive = (failure: unknown) => {
    shop.signal?.throwIfAborted();
    shop.log.debug('one way to a private copy failed', { problem: reason(failure) });
    failures.push(reason(failure));
    return undefined;
  };
  await writeAptConfig(shop.work, 'system');
  const cheap = await unpackWithLibraries(shop, 'redis', 'system').catch(survive);
  if (cheap) return cheap;

  failures.length = 0;
  await writeAptConfig(shop.work, 'private');
  // One broken source among several fails the update; the others may still have what we need.
  await apt(shop, ['update'], shop.work).catch(survive);
  for (const flavour of ['redis', 'valkey'] as const) {
    const unpacked = await unpackWithLibraries(shop, flavour, 'private').catch(survive);
    if (unpacked) return unpacked;
  }
  throw new Error(failures[0]);
}

/** The directories below a copy in which its shared libraries lie, in the form of LD_LIBRARY_PATH. */
export async function libraryPathOf(copy: string): Promise<string> {
  const found: string[] = [];
  for (const base of [join(copy, 'usr/lib'), join(copy, 'lib')]) {
    const names = await readdir(base).catch(() => []);
    found.push(...names.filter((name) => name.includes('-linux-')).map((name) => join(base, name)));
  }
  return found.join(':');
}

const APT_TIMEOUT_MS = 180_000;
const TOOL_TIMEOUT_MS = 60_000;
/** How deep a library of a library may be, the server itself being the first round. */
const MAX_ROUNDS = 6;

/**
 * Given with -c, this overrules the system's own settings. The hooks are cleared because images ship some that delete
 * the system's package cache after an update, which is not ours to empty.
 */
async function writeAptConfig(work: string, lists: 'system' | 'private'): Promise<void> {
  const own = lists === 'private' ? join(work, 'lists') : undefined;
  if (own) await mkdir(join(own, 'partial'), { recursive: true });
  await mkdir(join(work, 'cache/archives/partial'), { recursive: true });
  const settings = [
    `Dir::Cache "${join(work, 'cache')}";`,
    ...(own ? [`Dir::State::Lists "${own}";`] : []),
    'APT::Sandbox::User "";',
    'APT::Update::Error-Mode "any";',
    'Acquire::Retries "2";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
    ...['Pre-Invoke', 'Post-Invoke', 'Post-Invoke-Success'].map((hook) => `#clear APT::Update::${hook};`),
  ];
  await writeFile(join(work, 'apt.conf'), `${settings.join('\n')}\n`);
}

const apt = ({ tools, work, env, path, signal }: Workshop, args: readonly string[], cwd: string) =>
  runProgram(tools['apt-get'], ['-c', join(work, 'apt.conf'), '-q', ...args], {
    env: { ...env, PATH: path, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    timeoutMs: APT_TIMEOUT_MS,
    cwd,
    signal,
  });

/** The server first, then what its packages depend on, round by round, until the loader misses nothing. */
async function unpackWithLibraries(shop: Workshop, flavour: 'redis' | 'valkey', lists: string): Promise<Unpacked> {
  const root = join(shop.work, `root-${flavour}-${lists}`);
  await mkdir(root);
  const installed = await installedPackages(shop);
  const fetched = new Set<string>();
  let bytes = 0;
  // Debian keeps the program in …-tools; …-server adds the name under which it is a server.
  let wanted = [`${flavour}-server`, `${flavour}-tools`];
  for (let round = 0; round < MAX_ROUNDS && wanted.length > 0; round++) {
    const debs = await download(shop, wanted, join(shop.work, `debs-${flavour}-${lists}-${round}`));
    for (const deb of debs) {
      await tool(shop, 'dpkg-deb', ['-x', deb, root]);
      bytes += (await stat(deb)).size;
    }
    for (const name of wanted) fetched.add(name);
    if ((await missingLibraries(shop, root, flavour)).length === 0) return { root, bytes };
    const needed = (await Promise.all(debs.map((deb) => librariesNeededBy(shop, deb)))).flat();
    wanted = [...new Set(needed)].filter((name) => !fetched.has(name) && !installed.has(name));
  }
  throw new Error(`no package brings ${(await missingLibraries(shop, root, flavour)).join(', ')}`);
}

async function download(shop: Workshop, packages: readonly string[], into: string): Promise<string[]> {
  await mkdir(into);
  await apt(shop, ['download', ...packages], into);
  return (await readdir(into)).filter((name) => name.endsWith('.deb')).map((name) => join(into, name));
}

const tool = ({ tools, path, signal }: Workshop, name: keyof Tools, args: readonly string[], libraryPath?: string) =>
  runProgram(tools[name], args, {
    env: { PATH: path, LC_ALL: 'C', ...(libraryPath && { LD_LIBRARY_PATH: libraryPath }) },
    timeoutMs: TOOL_TIMEOUT_MS,
    signal,
  });

async function installedPackages(shop: Workshop): Promise<Set<string>> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: these are dpkg-query's own placeholders.
  const listed = await tool(shop, 'dpkg-query', ['-W', '-f', '${db:Status-Status} ${Package}\n']);
  return new Set([...listed.matchAll(/^installed (\S+)$/gm)].map(([, name]) => name!));
}

async function missingLibraries(shop: Workshop, root: string, flavour: string): Promise<string[]> {
  const program = join(root, `usr/bin/${flavour}-server`);
  const listed = await tool(shop, 'ldd', [program], await libraryPathOf(root));
  return [...listed.matchAll(/^\s*(\S+) => not found/gm)].map(([, name]) => name!);
}

/** Of alternatives the first, as apt would choose. Never the C library: it must be that of the system's own loader. */
async function librariesNeededBy(shop: Workshop, deb: string): Promise<string[]> {
  const depends = await tool(shop, 'dpkg-deb', ['-f', deb, 'Depends']);
  const names = depends.split(',').map((each) => /^\s*([a-z0-9][a-z0-9+.-]*)/.exec(each)?.[1] ?? '');
  return names.filter((name) => name.startsWith('lib') && name !== 'libc6');
}
