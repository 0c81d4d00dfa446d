import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { findPostgres, type PostgresPrograms } from './postgres-programs.ts';

/** A real PostgreSQL of its own: a temporary directory, a unix socket in it, no port. */
export interface PostgresServer extends AsyncDisposable {
  /** Makes a new, empty database and returns its URL. */
  createDatabase(options?: string): Promise<string>;
  /** Runs statements as the superuser, in the database of that URL if one is given. */
  query(statements: string, url?: string): Promise<unknown[]>;
  /** Starts it again after stop(), with its data. */
  start(): Promise<void>;
  /** As a crash would: connections are cut and nothing is written any more. */
  stop(): Promise<void>;
}

/** Logs in with its password, where every other role needs none. */
export const GUARDED_ROLE = { user: 'guarded', password: 'sesame-öffne' };

export interface PostgresForTests {
  /** Why the PostgreSQL tests cannot run here. */
  readonly missing: string | undefined;
  readonly start: () => Promise<PostgresServer>;
}

/** Asked once, where a test file is collected. On a CI machine nothing may be missing. */
export async function postgresForTests(): Promise<PostgresForTests> {
  const found = await findPostgres();
  if (typeof found !== 'string') return { missing: undefined, start: () => startPostgres(found) };
  if (process.env.CI === 'true') throw new Error(`PostgreSQL must be tested here: ${found}`);
  process.stderr.write(`The PostgreSQL tests are skipped: ${found}\n`);
  return { missing: found, start: () => Promise.reject(new Error(found)) };
}

async function startPostgres(programs: PostgresPrograms): Promise<PostgresServer> {
  // PostgreSQL refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const as = isRoot ? { uid: 65534, gid: 65534 } : {};
  const dir = await mkdtemp(join(isRoot ? '/tmp' : tmpdir(), 'reeve-pg-'));
  const spawned = { ...as, cwd: dir, env: { ...programs.env, LC_ALL: 'C' } };
  const data = join(dir, 'data');
  const url = (database: string) => `postgres://reeve@localhost/${database}?host=${encodeURIComponent(dir)}`;
  let server: ChildProcess | undefined;
  let databases = 0;

  const start = async () => {
    // What is written need not survive a power cut.
    const settings = ['listen_addresses=', `unix_socket_directories=${dir}`, 'fsync=off'].flatMap((it) => ['-c', it]);
    const child = spawn(join(programs.bin, 'postgres'), ['-D', data, ...settings], spawned);
    server = child;
    process.once('exit', cut);
    await said(child, 'ready to accept connections');
  };
  const cut = () => server?.kill('SIGQUIT');
  const stop = async () => {
    process.off('exit', cut);
    const child = server;
    server = undefined;
    if (!child || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGQUIT');
    await exited;
  };
  const query = async (statements: string, of = url('postgres')) => {
    const client = new pg.Client(of);
    await client.connect();
    try {
      return (await client.query(statements)).rows;
    } finally {
      await client.end();
    }
  };

  if (isRoot) await chown(dir, as.uid!, as.gid!);
  const initdb = ['-D', data, '-U', 'reeve', '-E', 'UTF8', '--locale=C', '--no-sync', '-A', 'trust'];
  await succeeded(spawn(join(programs.bin, 'initdb'), initdb, spawned));
  await writeFile(join(data, 'pg_hba.conf'), `local all ${GUARDED_ROLE.user} scram-sha-256\nlocal all all trust\n`);
  await start();
  await query(`create role ${GUARDED_ROLE.user} login password '${GUARDED_ROLE.password}'`);
  return {
    start,
    stop,
    query,
    createDatabase: async (options = '') => {
      const name = `test_${++databases}`;
      await query(`create database ${name} ${options}`);
      return url(name);
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function succeeded(child: ChildProcess): Promise<void> {
  const lines: string[] = [];
  for (const stream of [child.stdout!, child.stderr!]) createInterface(stream).on('line', (line) => lines.push(line));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${child.spawnfile} failed:\n${lines.join('\n')}`);
}

/** Resolves when the server has logged `words`. Its log is read to the end, or a full pipe would stop it. */
function said(child: ChildProcess, words: string): Promise<void> {
  const lines: string[] = [];
  child.stdout!.resume();
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    createInterface(child.stderr!)
      .on('line', (line) => {
        lines.push(line);
        if (line.includes(words)) resolve();
      })
      .once('close', () => reject(new Error(`${child.spawnfile} ended:\n${lines.join('\n')}`)));
  });
}
