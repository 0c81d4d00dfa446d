import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants, hostname } from 'node:os';
import { z } from 'zod';
import { systemClock as clock } from '../../clock.ts';
import { keepAlive } from '../../coordinator/locks/heartbeat.ts';
import { EXIT } from '../../error-catalogue.ts';
import { ReeveError, reason } from '../../errors.ts';
import { type Client, daemonOf } from '../client.ts';
import { type Acquired, askForLock, beat, type LockInput, release } from '../lock-client.ts';
import type { CommandModule } from '../main.ts';
import { type Output, reportFailure } from '../output.ts';

/** How long the command may take to end by itself, once told to. */
const KILL_AFTER_MS = 10_000;
/** A lease begins when the daemon grants it, which is a little before we hear of it. */
const LEASE_LEFT = 0.9;
const NOT_FOUND = 127;
const NOT_RUNNABLE = 126;

/** Runs a command under a lock. Standard output belongs to the command; what we say goes to standard error. */
export const run: CommandModule['run'] = async ({ input, flags }, output, surroundings) => {
  const { env, signal } = surroundings;
  const given = read(input);
  const [program, ...args] = given.command;
  const asked = requestOf(given, env);
  const client = await daemonOf(flags, surroundings);
  let held: Acquired;
  try {
    held = await askForLock(client, asked, {
      clock,
      signal,
      onQueued: ({ hold }) => hold && output.hint(hold.because),
    });
  } catch (thrown) {
    return signal.aborted ? interrupted(signal) : reportFailure(output, thrown, waitLonger(thrown, asked));
  }
  try {
    return await runUnder({ client, asked, held, program, args, env, signal, output });
  } finally {
    await release(client, asked).catch((error: unknown) =>
      output.hint(`the lock was not given back: ${reason(error)}`),
    );
  }
};

/** What the error itself says is for those who take locks by hand. */
function waitLonger(thrown: unknown, { lock, wait }: LockInput): string | undefined {
  if (!(thrown instanceof ReeveError) || !['LOCK_HELD', 'WAIT_OVER'].includes(thrown.code)) return undefined;
  const words = wait > 0 ? 'Wait longer' : 'Wait in line';
  return `${words}: reeve hold ${lock} --wait ${wait > 0 ? Math.ceil(wait * 2) : 60} -- COMMAND   Ask why: reeve why ${lock}`;
}

interface Under {
  readonly client: Client;
  readonly asked: LockInput;
  readonly held: Acquired;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly output: Output;
}

async function runUnder({ client, asked, held, program, args, env, signal, output }: Under): Promise<number> {
  const leaseMs = leaseOf(held.acquired_at, held.expires_at);
  const ttl = leaseMs / 1000;
  const kept = keepAlive({
    lock: asked.lock,
    lockId: held.lock_id,
    agent: asked.agent,
    leaseMs: leaseMs * LEASE_LEFT,
    intervalMs: (held.heartbeat_seconds ?? 10) * 1000,
    clock,
    onTrouble: (error) => output.hint(`no heartbeat: ${reason(error)}`),
    beat: async (stopped) => {
      try {
        await beat(client, asked, ttl, stopped);
        return { outcome: 'extended', leaseMs };
      } catch (error) {
        if (error instanceof ReeveError && error.code === 'LOCK_LOST') return { outcome: 'lost' };
        throw error;
      }
    },
  });
  // On a terminal the command stays in our group, so that it can read from it and Ctrl-C reaches it by itself.
  const detached = !process.stdin.isTTY;
  const child = spawn(program, args, {
    stdio: 'inherit',
    detached,
    env: {
      ...env,
      REEVE_AGENT: asked.agent,
      REEVE_LOCK: asked.lock,
      REEVE_LOCK_ID: held.lock_id,
      REEVE_FENCING_TOKEN: String(held.fencing_token),
    },
  });
  const onLost = () => void stopChild(child, detached, 'SIGTERM');
  const onSignal = () => {
    if (detached || signal.reason !== 'SIGINT') void stopChild(child, detached, signalOf(signal));
  };
  kept.signal.addEventListener('abort', onLost, { once: true });
  signal.addEventListener('abort', onSignal, { once: true });
  try {
    const code = await exitOf(child, output);
    return kept.signal.aborted ? reportFailure(output, kept.signal.reason) : code;
  } finally {
    signal.removeEventListener('abort', onSignal);
    await kept.stop();
  }
}

const typed = z.object({
  lock: z.string(),
  command: z.tuple([z.string()], z.string()),
  agent: z.string().optional(),
  wait: z.coerce.number().min(0).default(0),
  mode: z.string().optional(),
  purpose: z.string().optional(),
  ttl: z.coerce.number().positive().optional(),
  also: z.string().optional(),
});

function read(input: unknown): z.output<typeof typed> {
  const parsed = typed.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const problem = `--${issue?.path.join('.')}: ${issue?.message}`;
  throw new ReeveError('USAGE', { problem, hint: 'reeve hold --help' });
}

function requestOf(input: z.output<typeof typed>, env: Under['env']): LockInput {
  const { command, also, agent, purpose, ...rest } = input;
  return {
    ...rest,
    agent: agent ?? env.REEVE_AGENT ?? ownName(),
    lock_id: randomUUID(),
    purpose: (purpose ?? command.join(' ')).slice(0, 500),
    ...(also !== undefined && { also: also.split(',').map((lock) => lock.trim()) }),
  };
}

/** Each process is somebody of its own: what it waits for is no business of its neighbours'. */
const ownName = () =>
  `hold-${hostname()
    .replace(/[^A-Za-z0-9._-]/g, '-')
    .slice(0, 64)}-${process.pid}`;

const leaseOf = (from: string | undefined, to: string | undefined): number =>
  Date.parse(to ?? '') - Date.parse(from ?? '');

function exitOf(child: ChildProcess, output: Output): Promise<number> {
  return new Promise((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      const isNotFound = error.code === 'ENOENT';
      output.hint(`error ${child.spawnfile} cannot be run: ${isNotFound ? 'there is no such command' : reason(error)}`);
      resolve(isNotFound ? NOT_FOUND : NOT_RUNNABLE);
    });
    child.once('exit', (code, name) => resolve(name ? 128 + constants.signals[name] : (code ?? EXIT.failed)));
  });
}

/** With its children where it has a group of its own. */
async function stopChild(child: ChildProcess, isGroup: boolean, name: NodeJS.Signals): Promise<void> {
  const send = (what: NodeJS.Signals) => {
    try {
      if (isGroup && child.pid !== undefined) process.kill(-child.pid, what);
      else child.kill(what);
    } catch {
      // It is gone already, which is what was wanted.
    }
  };
  const gone = new AbortController();
  child.once('exit', () => gone.abort());
  send(name);
  await clock.sleep(KILL_AFTER_MS, gone.signal);
  if (child.exitCode === null && child.signalCode === null) send('SIGKILL');
}

const signalOf = ({ reason: name }: AbortSignal): NodeJS.Signals => (name === 'SIGTERM' ? 'SIGTERM' : 'SIGINT');
const interrupted = (signal: AbortSignal): number => 128 + constants.signals[signalOf(signal)];
