import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findTestRedis } from './redis.ts';

/** A server with settings of the test's own choice, bad ones included, that can be made to crash and come back. */
export interface RedisProcess extends AsyncDisposable {
  readonly port: number;
  readonly dir: string;
  readonly pid: number;
  /** As kill -9 does. */
  crash(): Promise<void>;
  /** Comes back at the same address, with what it had written. */
  start(): Promise<void>;
  /** Hangs without closing anything, until it goes on. */
  hang(): void;
  goOn(): void;
}

export type RedisSettings = Readonly<Record<string, string | number>>;

/** Every write is on disk before it is answered, so that a crash loses nothing a test could rely on. */
export const DURABLE: RedisSettings = { appendonly: 'yes', appendfsync: 'always' };

export interface ProcessOptions {
  /** Lines that the settings cannot say: some settings come more than once. */
  readonly lines?: readonly string[];
  readonly sentinel?: boolean;
  /** Files the server shall find in its directory. */
  readonly files?: Readonly<Record<string, string>>;
}

export async function runRedis(settings: RedisSettings = {}, options: ProcessOptions = {}): Promise<RedisProcess> {
  const { program, libraryPath } = await findTestRedis();
  const dir = await mkdtemp(join(tmpdir(), 'reeve-raw-'));
  const port = typeof settings.port === 'number' ? settings.port : await freePort();
  const all: RedisSettings = { bind: '127.0.0.1', port, dir, save: '', 'set-proc-title': 'no', ...settings };
  const text = Object.entries(all).map(([name, value]) => `${name} ${JSON.stringify(String(value))}`);
  const config = join(dir, 'redis.conf');
  await writeFile(config, [...text, ...(options.lines ?? [])].join('\n'));
  for (const [name, content] of Object.entries(options.files ?? {})) await writeFile(join(dir, name), content);

  const env = { LC_ALL: 'C', ...(libraryPath && { LD_LIBRARY_PATH: libraryPath }) };
  let child: ChildProcess;
  const cut = () => void child.kill('SIGKILL');
  const start = async () => {
    child = spawn(program, [config, ...(options.sentinel ? ['--sentinel'] : [])], { env, cwd: dir });
    process.once('exit', cut);
    await said(child, /Ready to accept connections|Sentinel ID is/);
  };
  const crash = async () => {
    process.off('exit', cut);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  await start();
  return {
    port,
    dir,
    get pid() {
      return child.pid!;
    },
    crash,
    start,
    hang: () => void child.kill('SIGSTOP'),
    goOn: () => void child.kill('SIGCONT'),
    [Symbol.asyncDispose]: async () => {
      await crash();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/**
 * A port for a server that is to die and come back on it. The system hands out those from 32768 up to whoever connects or
 * asks for any: one of them might be somebody else's by the time the server is back. So it is chosen from below.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

function said(child: ChildProcess, words: RegExp): Promise<void> {
  const lines: string[] = [];
  child.stderr!.resume();
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    createInterface(child.stdout!)
      .on('line', (line) => {
        lines.push(line);
        if (words.test(line)) resolve();
      })
      .once('close', () => reject(new Error(`${child.spawnfile} ended:\n${lines.slice(-20).join('\n')}`)));
  });
}
