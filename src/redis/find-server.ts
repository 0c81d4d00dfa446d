import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Clock } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { fetchServer } from './fetch-server.ts';
import { type InstallCommand, installCommand } from './install-command.ts';
import { directoriesOf, findProgram, type ProgramEnv, runProgram } from './run-program.ts';
import { libraryPathOf } from './unpack-server.ts';

/** A server program that was seen to run. */
export interface RedisProgram {
  readonly program: string;
  readonly version: string;
  readonly flavour: 'redis' | 'valkey';
  /** Where a private copy keeps its libraries, in the form of LD_LIBRARY_PATH. */
  readonly libraryPath?: string;
  readonly origin: 'setting' | 'path' | 'private';
}

export interface FindOptions {
  /** The program a person chose; then nothing else is considered. */
  readonly setting?: string;
  readonly dataDir: string;
  /** reeve's cache directory; a private copy is kept in its `redis`. */
  readonly cacheDir: string;
  /** The text of PATH. */
  readonly path: string;
  /** Passed on to the package manager, which takes its proxies from it. */
  readonly env?: ProgramEnv;
  /** Where servers are installed that is often missing from a user's PATH. */
  readonly alsoIn?: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** What reeve's scripts and settings rely on is all there from 6.2 on. */
const OLDEST = [6, 2] as const;
const NAMES = ['redis-server', 'valkey-server'] as const;
const SYSTEM_DIRECTORIES = ['/usr/local/bin', '/usr/local/sbin', '/usr/sbin', '/opt/homebrew/bin'];
const VERSION_TIMEOUT_MS = 10_000;
const INSTALL_TIMEOUT_MS = 300_000;

/** Finds redis-server or valkey-server: the setting, PATH, a private copy; else fetches one, or says how to get it. */
export async function findRedisServer(options: FindOptions): Promise<RedisProgram> {
  const problems: string[] = [];
  const found = await lookForRedisServer(options, problems);
  return found ?? (await fetched(options, problems)) ?? (await installed(options, problems));
}

/** The same without fetching: undefined where none is at hand. */
export async function lookForRedisServer(
  options: FindOptions,
  problems: string[] = [],
): Promise<RedisProgram | undefined> {
  if (options.setting) return await chosen(options.setting, options);
  return (await onPath(options, problems)) ?? (await privateCopy(options, problems));
}

async function chosen(setting: string, options: FindOptions): Promise<RedisProgram> {
  const program = isAbsolute(setting) ? setting : await findProgram(setting, directoriesOf(options.path));
  try {
    if (!program) throw new Error('it is not on PATH');
    return await tryProgram({ program, origin: 'setting' }, options.signal);
  } catch (failure) {
    options.signal?.throwIfAborted();
    throw new ReeveError('REDIS_PROGRAM_UNUSABLE', { program: setting, problem: reason(failure) }, { cause: failure });
  }
}

async function onPath(options: FindOptions, problems: string[]): Promise<RedisProgram | undefined> {
  const directories = [...directoriesOf(options.path), ...(options.alsoIn ?? SYSTEM_DIRECTORIES)];
  for (const name of NAMES) {
    const program = await findProgram(name, directories);
    const usable = program && (await usableOr(problems, { program, origin: 'path' }, options));
    if (usable) return usable;
  }
  return undefined;
}

/** The cache serves all data directories; one has a copy of its own only where no cache can be written. */
const copiesIn = ({ cacheDir, dataDir }: FindOptions) => [join(cacheDir, 'redis'), join(dataDir, 'redis-program')];

async function privateCopy(options: FindOptions, problems: string[]): Promise<RedisProgram | undefined> {
  for (const base of copiesIn(options)) {
    const names = await readdir(base).catch(() => []);
    for (const name of names.filter((each) => !each.startsWith('.')).sort()) {
      const usable = await usableCopy(join(base, name), options, problems);
      if (usable) return usable;
    }
  }
  return undefined;
}

async function usableCopy(copy: string, options: FindOptions, problems: string[]): Promise<RedisProgram | undefined> {
  const program = (await Promise.all(NAMES.map((name) => findProgram(name, [join(copy, 'usr/bin')])))).find(Boolean);
  if (!program) return undefined;
  return await usableOr(problems, { program, libraryPath: await libraryPathOf(copy), origin: 'private' }, options);
}

async function fetched(options: FindOptions, problems: string[]): Promise<RedisProgram | undefined> {
  const { path, env = {}, clock, log, signal } = options;
  for (const into of copiesIn(options)) {
    try {
      const copy = await fetchServer({ into, path, env, clock, log, signal });
      const usable = await usableCopy(copy, options, problems);
      // An old distribution has only an old server; kept, it would be joined by another at every start.
      if (!usable) await rm(copy, { recursive: true, force: true });
      return usable;
    } catch (failure) {
      signal?.throwIfAborted();
      problems.push(reason(failure));
      // Elsewhere only helps against a directory that cannot be written.
      if (!isAboutWriting(failure)) break;
    }
  }
  return undefined;
}

const isAboutWriting = (failure: unknown) =>
  ['EACCES', 'EROFS', 'EPERM', 'ENOSPC', 'ENOTDIR'].includes(String((failure as NodeJS.ErrnoException).code));

/** The last resort is the system's package manager, and the last word the command that a person can give it. */
async function installed(options: FindOptions, problems: string[]): Promise<RedisProgram> {
  const isRoot = process.getuid?.() === 0;
  const osRelease = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const command = installCommand({ platform: process.platform, osRelease, isRoot });
  if (command && isRoot && (await mayInstall(command))) {
    const usable = await install(command, options, problems);
    if (usable) return usable;
  }
  throw new ReeveError('REDIS_NOT_FOUND', {
    problem: [...new Set(problems)].join('; '),
    command: command?.text ?? 'Install Redis 6.2 or newer, or Valkey, with the package manager of this system.',
  });
}

/** Debian's package starts a Redis of its own under systemd; that is for a person to want. The others start nothing. */
const mayInstall = async ({ manager }: InstallCommand): Promise<boolean> =>
  manager !== 'apt' ||
  !(await stat('/run/systemd/system').then(
    () => true,
    () => false,
  ));

async function install(command: InstallCommand, options: FindOptions, problems: string[]) {
  const { path, env, log, signal } = options;
  // Runlevel 1 is that of rescue, in which Debian's packages leave their services alone.
  const quiet = { PATH: path, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  try {
    for (const [name, ...args] of command.steps) {
      const program = await findProgram(name, directoriesOf(path));
      if (!program) throw new Error(`${name} is not on PATH`);
      log.info('installing a redis-server with the package manager', { step: [name, ...args].join(' ') });
      await runProgram(program, args, { env: { ...env, ...quiet }, timeoutMs: INSTALL_TIMEOUT_MS, signal });
    }
    return await onPath(options, problems);
  } catch (failure) {
    signal?.throwIfAborted();
    problems.push(reason(failure));
    return undefined;
  }
}

type Candidate = Pick<RedisProgram, 'program' | 'libraryPath' | 'origin'>;

async function usableOr(problems: string[], candidate: Candidate, { log, signal }: FindOptions) {
  try {
    return await tryProgram(candidate, signal);
  } catch (failure) {
    signal?.throwIfAborted();
    const problem = `${candidate.program}: ${reason(failure)}`;
    log.warn('a redis-server was found that cannot be used', { problem });
    problems.push(problem);
    return undefined;
  }
}

/** Only running it tells whether its libraries are there and what it is; distributions call Valkey redis-server too. */
async function tryProgram(candidate: Candidate, signal?: AbortSignal): Promise<RedisProgram> {
  const { program, libraryPath } = candidate;
  const env = { LC_ALL: 'C', ...(libraryPath && { LD_LIBRARY_PATH: libraryPath }) };
  const said = await runProgram(program, ['--version'], { env, timeoutMs: VERSION_TIMEOUT_MS, signal });
  const { name, version } = /^(?<name>Redis|Valkey) server v=(?<version>\d+\.\d+\.\d+)/i.exec(said)?.groups ?? {};
  if (!name || !version) throw new Error('it does not name itself a Redis or Valkey server');
  if (!isRecent(version)) throw new Error(`it is ${name} ${version}; reeve needs ${OLDEST.join('.')} or newer`);
  return { ...candidate, version, flavour: name.toLowerCase() === 'valkey' ? 'valkey' : 'redis' };
}

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
