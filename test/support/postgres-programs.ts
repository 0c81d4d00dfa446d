import { execFile } from 'node:child_process';
import { access, chmod, constants, mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface PostgresPrograms {
  readonly bin: string;
  /** Where the libraries are, for a server that was unpacked rather than installed. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * An installed PostgreSQL server, or one that Debian's package manager fetched and that runs from a cache directory:
 * nothing is installed, and no root is needed. The string says why there is none.
 */
export async function findPostgres(cacheDir = defaultCacheDir()): Promise<PostgresPrograms | string> {
  const installed = (await onPath()) ?? (await newestIn('/usr/lib/postgresql'));
  if (installed) return { bin: installed, env: {} };
  try {
    return (await usableIn(cacheDir)) ?? (await fetchInto(cacheDir));
  } catch (error) {
    return `no PostgreSQL server is installed, and none could be fetched: ${String(error)}`;
  }
}

/** The server runs as nobody where the tests run as root, and nobody may not look into root's home. */
const defaultCacheDir = () =>
  process.getuid?.() === 0
    ? '/var/cache/reeve'
    : join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'reeve');

async function onPath(): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    // A link leads to where the other programs are.
    const bin = await realpath(join(folder, 'initdb')).then(dirname, () => undefined);
    if (bin && (await hasServer(bin))) return bin;
  }
  return undefined;
}

async function newestIn(folder: string): Promise<string | undefined> {
  const versions = await readdir(folder).catch(() => []);
  for (const version of versions.sort((a, b) => Number(b) - Number(a))) {
    const bin = join(folder, version, 'bin');
    if (await hasServer(bin)) return bin;
  }
  return undefined;
}

const hasServer = (bin: string): Promise<boolean> =>
  Promise.all(['initdb', 'postgres'].map((program) => access(join(bin, program), constants.X_OK))).then(
    () => true,
    () => false,
  );

/** A tree from before an upgrade of the system may not run any more. */
const usableIn = (cacheDir: string) => unpackedIn(cacheDir).catch(() => undefined);

/** PostgreSQL finds its own files relative to its program, so an unpacked tree works wherever it is. */
async function unpackedIn(cacheDir: string): Promise<PostgresPrograms | undefined> {
  const root = join(cacheDir, 'postgresql');
  const bin = await newestIn(join(root, 'usr/lib/postgresql'));
  if (!bin) return undefined;
  const folders = await Promise.all(
    ['usr/lib', 'lib'].map(async (folder) => {
      const names = await readdir(join(root, folder)).catch(() => []);
      return names.filter((name) => name.includes('-linux-')).map((name) => join(root, folder, name));
    }),
  );
  const env = { LD_LIBRARY_PATH: folders.flat().join(delimiter) };
  await run(join(bin, 'postgres'), ['--version'], { env });
  return { bin, env };
}

async function fetchInto(cacheDir: string): Promise<PostgresPrograms> {
  await mkdir(cacheDir, { recursive: true });
  const work = await mkdtemp(join(cacheDir, 'fetch-'));
  try {
    const root = join(work, 'root');
    for (const file of await download(work)) await run('dpkg', ['-x', file, root]);
    await chmod(root, 0o755);
    // Another test run may have been quicker; then its tree stays.
    if (!(await usableIn(cacheDir))) {
      await rm(join(cacheDir, 'postgresql'), { recursive: true, force: true });
      await rename(root, join(cacheDir, 'postgresql'));
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const programs = await unpackedIn(cacheDir);
  if (!programs) throw new Error('the package held no server');
  return programs;
}

/** The server's package and those libraries it needs and this machine lacks, checked by apt against its signatures. */
async function download(work: string): Promise<string[]> {
  const lists = join(work, 'state/lists/partial');
  const archives = join(work, 'cache/archives/partial');
  const packages = join(work, 'packages');
  for (const folder of [lists, archives, packages]) await mkdir(folder, { recursive: true });
  const own = [`Dir::State=${work}/state`, `Dir::Cache=${work}/cache`, 'Dir::State::status=/var/lib/dpkg/status'];
  const manners = ['APT::Sandbox::User=', 'Debug::NoLocking=1', 'Acquire::http::Timeout=20', 'Acquire::Retries=1'];
  const options = [...own, ...manners].flatMap((option) => ['-o', option]);
  const apt = (...args: string[]) => run('apt-get', [...options, ...args], { cwd: packages, maxBuffer: 64 << 20 });

  await apt('update');
  const plan = await apt('install', '--simulate', '--no-install-recommends', 'postgresql');
  const wanted = [...plan.stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name!).filter(isNeeded);
  await apt('download', ...wanted);
  return (await readdir(packages)).map((file) => join(packages, file));
}

/** Not the compiler for queries (libllvm, the largest by far): the server loads it only when asked to. */
const isNeeded = (name: string): boolean => /^(postgresql-\d+$|lib)/.test(name) && !/^lib(llvm|.*perl)/.test(name);
