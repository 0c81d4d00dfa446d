import { backOff, type Clock } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Hold } from '../hold.ts';
import type { Client } from './client.ts';

/** What POST /locks answers. */
export interface Acquired {
  readonly outcome: 'held' | 'queued';
  readonly lock: string;
  readonly lock_id: string;
  readonly agent: string;
  readonly fencing_token?: number;
  readonly acquired_at?: string;
  readonly expires_at?: string;
  readonly heartbeat_seconds?: number;
  readonly position?: number;
  readonly hold?: Hold;
}

export interface LockInput {
  readonly lock: string;
  readonly agent: string;
  readonly wait: number;
  readonly lock_id: string;
  readonly [more: string]: unknown;
}

export interface AskOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told when it is in line, and on each move. */
  readonly onQueued?: (place: Acquired) => void;
}

/** One call stays on the line this long; a proxy between may not like longer ones. */
const BLOCK_SECONDS = 20;

/**
 * Asks until the lock is held or the wait is over. Broken off by a deadlock, it asks again after a pause that doubles,
 * with the same lock_id, so that its age counts. Whatever ends it, no place in line is left behind.
 */
export async function askForLock(client: Client, input: LockInput, options: AskOptions): Promise<Acquired> {
  const { clock, signal, onQueued } = options;
  const endsAt = clock.now() + input.wait * 1000;
  const left = () => Math.max(0, endsAt - clock.now()) / 1000;
  let place: Acquired | undefined;
  let deadlocks = 0;
  for (;;) {
    signal.throwIfAborted();
    const wait = place ? Math.max(left(), 0.001) : input.wait;
    // The first answer comes at once, so that people see what they wait for.
    const block = place ? Math.min(BLOCK_SECONDS, wait) : 0;
    try {
      const answer = await post(client, { ...input, wait, block, queued: place !== undefined }, signal);
      if (answer.outcome === 'held') return answer;
      if (answer.position !== place?.position) onQueued?.(answer);
      place = answer;
    } catch (error) {
      const isDeadlock = error instanceof ReeveError && error.code === 'DEADLOCK_DETECTED';
      if (place && (signal.aborted || !isDeadlock)) await leave(client, input);
      if (!isDeadlock || left() === 0) throw error;
      await clock.sleep(Math.min(backOff(deadlocks++, 200, 10_000), left() * 1000), signal);
      place = undefined;
      continue;
    }
    if (left() > 0) continue;
    await leave(client, input);
    throw new ReeveError('WAIT_OVER', {
      lock: input.lock,
      agent: input.agent,
      why: place.hold?.because ?? 'Someone else holds it.',
      hold: place.hold,
    });
  }
}

async function post(client: Client, input: Readonly<Record<string, unknown>>, signal: AbortSignal) {
  const { answer } = await client.ask({ method: 'POST', path: '/locks', input, signal });
  return answer as Acquired;
}

export interface Held {
  readonly lock: string;
  readonly agent: string;
  readonly lock_id: string;
  readonly also?: unknown;
}

const alsoOf = ({ also }: Held) => (also === undefined ? {} : { also });

/** Renews; the answer says until when. */
export async function beat(client: Client, held: Held, ttl: number | undefined, signal: AbortSignal) {
  const { lock, agent, lock_id } = held;
  const input = { key: lock, agent, lock_id, ...alsoOf(held), ...(ttl !== undefined && { ttl_extension: ttl }) };
  const { answer } = await client.ask({ method: 'POST', path: '/locks/{key}/heartbeat', input, signal });
  return answer as { readonly expires_at: string };
}

export async function release(client: Client, held: Held): Promise<void> {
  const { lock, agent, lock_id } = held;
  await client.ask({ method: 'DELETE', path: '/locks/{key}', input: { key: lock, agent, lock_id, ...alsoOf(held) } });
}

/** Giving up a place is a courtesy: silent waiters are passed over anyway. */
const leave = (client: Client, held: LockInput): Promise<void> => release(client, held).catch(() => {});
