import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { plainEnv, type Ran, REEVE } from './cli.ts';
import { until } from './until.ts';

export interface DaemonOptions {
  /** Where it is started. Default: an empty folder, removed at the end. */
  readonly cwd?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: any free port. */
  readonly port?: number;
}

export interface LogLine {
  readonly msg: string;
  readonly level: number;
  readonly [field: string]: unknown;
}

/** `bin/reeve daemon` as a process of its own: what only the real program can show. */
export interface TestDaemon extends AsyncDisposable {
  readonly pid: number;
  readonly cwd: string;
  readonly dataDir: string;
  /** Where it listens; known once it is ready. */
  readonly url: string;
  readonly logs: readonly LogLine[];
  /** What it wrote to standard error so far. */
  readonly complaints: string;
  /** Resolves at its end, however that comes. */
  readonly exited: Promise<Ran['code']>;
  /** The first line with this sentence, after so many of them; waits for it. */
  logged(sentence: string, after?: number): Promise<LogLine>;
  /** The process of its embedded Redis. */
  redisPid(): Promise<number>;
  /** A connection to its embedded Redis. Whoever takes it closes it. */
  redisClient(): Promise<Redis>;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<{ status: number; body: never }>;
  signal(name: NodeJS.Signals): void;
  /** Asks it to end, and waits. */
  stop(name?: NodeJS.Signals): Promise<Ran['code']>;
}

/** Starts it and waits until it says that it is ready. */
export async function startDaemon(options: DaemonOptions = {}): Promise<TestDaemon> {
  const daemon = await spawnDaemon(options);
  const ended = daemon.exited.then((code) => {
    throw new Error(`the daemon ended with ${code} before it was ready:\n${daemon.complaints}${told(daemon.logs)}`);
  });
  await Promise.race([daemon.logged('ready'), ended]);
  // Its end is no failure from here on.
  ended.catch(() => {});
  return daemon;
}

/** Starts it and waits for nothing. */
export async function spawnDaemon({ cwd, args = [], env = {}, port = 0 }: DaemonOptions = {}): Promise<TestDaemon> {
  const home = cwd ?? (await mkdtemp(join(tmpdir(), 'reeve-daemon-')));
  const child = spawn(REEVE, ['daemon', '--http-port', String(port), ...args], { cwd: home, env: plainEnv(env) });
  const cut = () => child.kill('SIGKILL');
  process.once('exit', cut);
  const logs: LogLine[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => logs.push(read(line)));
  let complaints = '';
  child.stderr.on('data', (chunk) => {
    complaints += chunk;
  });
  const exited = exitOf(child).finally(() => process.off('exit', cut));
  const dataDir = join(home, '.reeve');
  const find = (sentence: string, after: number) => logs.filter(({ msg }) => msg === sentence)[after];
  const stop = async (name: NodeJS.Signals = 'SIGTERM') => {
    child.kill(name);
    return exited;
  };
  return {
    pid: child.pid!,
    cwd: home,
    dataDir,
    logs,
    exited,
    get complaints() {
      return complaints;
    },
    get url() {
      return String(find('ready', 0)?.url);
    },
    logged: (sentence, after = 0) => until(`the log says "${sentence}"`, () => find(sentence, after), 20_000),
    redisPid: async () => Number(await readFile(join(dataDir, 'redis/redis.pid'), 'utf8')),
    redisClient: async () => {
      const password = (await readFile(join(dataDir, 'redis/password'), 'utf8')).trim();
      return new Redis({ path: join(dataDir, 'redis/redis.sock'), password });
    },
    get: async (path, headers = {}) => {
      const response = await fetch(new URL(path, find('ready', 0)?.url as string), { headers });
      const isJson = response.headers.get('content-type')?.includes('json');
      return { status: response.status, body: (isJson ? await response.json() : await response.text()) as never };
    },
    signal: (name) => void child.kill(name),
    stop,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) await stop('SIGKILL');
      if (!cwd) await removeQuietly(home);
    },
  };
}

function exitOf(child: ChildProcess): Promise<Ran['code']> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(signal ?? code));
  });
}

/** Pretty lines are kept as they are. */
function read(line: string): LogLine {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return { msg: line, level: 0 };
  }
}

const told = (logs: readonly LogLine[]) => logs.map((line) => JSON.stringify(line)).join('\n');

/** A Redis whose daemon was killed may still write its last words. */
const removeQuietly = (dir: string) => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
