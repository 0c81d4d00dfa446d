import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { backOff, type Clock } from '../clock.ts';
import { ReeveError, reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Service, service } from '../service.ts';
import { addressText, type RedisAddress } from './address.ts';
import type { RedisProgram } from './find-server.ts';
import { untilReady } from './ready.ts';
import {
  boundLog,
  keptPassword,
  lastLines,
  prepareDir,
  type ServerFiles,
  serverFiles,
  writeConfig,
} from './server-files.ts';
import { endLeftover, launch, type ServerProcess } from './server-process.ts';

export interface RedisServerOptions {
  /** Asked at each start, for finding may mean fetching. */
  readonly find: (signal: AbortSignal) => Promise<RedisProgram>;
  /** Redis's own directory: its data, configuration, password, log and socket. Nothing else may use it. */
  readonly dir: string;
  /** Default: a socket in `dir`, or a free loopback port where the path is too long for a socket. */
  readonly listen?: { readonly socket: string } | { readonly port: number };
  /** The text of PATH, to find setpriv. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long it may take to end before it is forced. */
  readonly graceMs?: number;
  /** It died and is back, at the same address. */
  readonly onRestart?: (facts: RestartFacts) => void;
  /** It keeps dying and is not tried again. */
  readonly onFatal?: (error: ReeveError) => void;
}

export interface RestartFacts {
  readonly restarts: number;
  readonly how: string;
  readonly downMs: number;
}

export interface RedisServer extends Service {
  /** Known from the first start on; the same after every restart. */
  address(): RedisAddress;
  /** Undefined while none runs. */
  pid(): number | undefined;
  /** Unexpected deaths it came back from, since the last start. */
  restarts(): number;
}

const PATIENCE_MS = 30_000;
/** A death this soon after the birth is one of a row; after MAX_QUICK_DEATHS of them nothing would get better. */
const QUICK_MS = 10_000;
const MAX_QUICK_DEATHS = 5;
const BACK_OFF = { baseMs: 100, maxMs: 5_000 };
const TOLD_LINES = 5;
/** What fits into sockaddr_un with its closing zero. */
const SOCKET_PATH_LIMIT_BYTES = process.platform === 'darwin' ? 103 : 107;

/** The embedded Redis: a real server as a child process, kept alive, ended with the daemon however that ends. */
export function redisServer(options: RedisServerOptions): RedisServer {
  const { clock, log, graceMs = 20_000 } = options;
  const files = serverFiles(options.dir);
  let address: RedisAddress | undefined;
  let running: ServerProcess | undefined;
  let restarts = 0;

  const bringUp = async (program: RedisProgram, at: RedisAddress, signal: AbortSignal) => {
    await boundLog(files);
    const child = await launch({ program, files, path: options.path, clock });
    running = child;
    void child.exited.then(() => {
      if (running === child) running = undefined;
    });
    try {
      await untilReady(child, at, { clock, patienceMs: PATIENCE_MS, signal });
      return child;
    } catch (failure) {
      await child.end(graceMs);
      throw failure;
    }
  };

  /** Runs until stop, or until it gives up. Only stop aborts the signal, and it ends the child itself. */
  const supervise = async (program: RedisProgram, at: RedisAddress, first: ServerProcess, signal: AbortSignal) => {
    let child: ServerProcess | undefined = first;
    let bornAt = clock.now();
    let how = '';
    for (let quickDeaths = 0; ; ) {
      if (child) how = await child.exited;
      if (signal.aborted) return;
      const diedAt = clock.now();
      quickDeaths = diedAt - bornAt < QUICK_MS ? quickDeaths + 1 : 1;
      log.warn('redis died', { how, quickDeaths, log: files.log });
      if (quickDeaths >= MAX_QUICK_DEATHS) return await giveUp(program, how);
      await clock.sleep(backOff(quickDeaths - 1, BACK_OFF.baseMs, BACK_OFF.maxMs), signal);
      if (signal.aborted) return;
      bornAt = clock.now();
      child = await bringUp(program, at, signal).catch((failure: unknown) => {
        how = reason(failure);
        return undefined;
      });
      if (!child) continue;
      restarts += 1;
      const facts = { restarts, how, downMs: clock.now() - diedAt };
      log.warn('redis restarted', { pid: child.pid, ...facts });
      options.onRestart?.(facts);
    }
  };

  const giveUp = async (program: RedisProgram, how: string) => {
    const error = await startFailed(program, files, `it died ${MAX_QUICK_DEATHS} times in a row, last by ${how}`);
    log.error('redis keeps dying', { problem: error.message });
    options.onFatal?.(error);
  };

  const life = service('redis', async (signal) => {
    const startedAt = clock.now();
    const program = await options.find(signal);
    restarts = 0;
    await prepareDir(files);
    const leftover = await endLeftover(files, graceMs, clock);
    if (leftover) log.warn('ended a redis that an earlier daemon left behind', { pid: leftover });
    const at = await chooseAddress(options.listen, files, await keptPassword(files));
    await writeConfig(files, at);
    const first = await bringUp(program, at, signal).catch(async (failure: unknown) => {
      throw await startFailed(program, files, reason(failure), failure);
    });
    address = at;
    const { flavour, version } = program;
    const readyMs = clock.now() - startedAt;
    log.info('redis ready', { pid: first.pid, address: addressText(at), flavour, version, readyMs });
    const supervision = supervise(program, at, first, signal);
    return async () => {
      await running?.end(graceMs);
      await supervision;
      if (at.kind === 'socket') await rm(at.path, { force: true });
    };
  });

  return {
    ...life,
    address: () => {
      if (address) return address;
      throw new ReeveError('REDIS_UNAVAILABLE', { address: files.dir, problem: 'it has not been started' });
    },
    pid: () => running?.pid,
    restarts: () => restarts,
  };
}

async function chooseAddress(
  listen: RedisServerOptions['listen'],
  files: ServerFiles,
  password: string,
): Promise<RedisAddress> {
  const wanted = listen ?? { socket: files.socket };
  if ('socket' in wanted && Buffer.byteLength(wanted.socket) <= SOCKET_PATH_LIMIT_BYTES) {
    return { kind: 'socket', path: wanted.socket, password };
  }
  const port = ('port' in wanted && wanted.port) || (await freePort());
  return { kind: 'tcp', host: '127.0.0.1', port, password };
}

/** Another program may take it before Redis does; then the start fails and says so. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const bound = probe.address();
      probe.close(() => resolve(typeof bound === 'object' && bound ? bound.port : 0));
    });
  });
}

async function startFailed(program: RedisProgram, files: ServerFiles, problem: string, cause?: unknown) {
  const lines = await lastLines(files, TOLD_LINES);
  const told = lines.length > 0 ? `${problem}. Its last words:\n${lines.join('\n')}` : problem;
  return new ReeveError('REDIS_START_FAILED', { program: program.program, problem: told, log: files.log }, { cause });
}
