import type { Clock } from '../../clock.ts';
import { ReeveError } from '../../errors.ts';

/** Renews once. Whoever holds locks in this process asks the room; the command line asks over HTTP. */
export type Beat = (signal: AbortSignal) => Promise<BeatOutcome>;

export type BeatOutcome =
  | { readonly outcome: 'extended' /** How long from now the lease lasts. */; readonly leaseMs: number }
  | { readonly outcome: 'lost' };

export interface KeepOptions {
  readonly beat: Beat;
  /** What is held, for the error. */
  readonly lock: string;
  readonly lockId: string;
  readonly agent: string;
  /** How long the lease lasts, from `grantedAt` on. */
  readonly leaseMs: number;
  /** When the grant was asked for, by our clock: the lease cannot have begun before. */
  readonly grantedAt?: number;
  readonly intervalMs: number;
  readonly clock: Clock;
  /** A beat that failed is tried again until the lease is over; someone may want to know. */
  readonly onTrouble?: (error: unknown) => void;
}

/** A lock that renews itself until it is given up, or lost. */
export interface Kept {
  /** Aborted with LOCK_LOST when the lock is lost, or may be: nobody answered for a whole lease. */
  readonly signal: AbortSignal;
  /** Beats no more. Giving the lock back is the caller's to do. */
  stop(): Promise<void>;
}

/** Three beats fit into a lease, so that two may fail. */
const BEATS_PER_LEASE = 3;
const RETRIES_PER_INTERVAL = 5;

/** Beats in the background. Work under the lock takes the signal, and stops when it is aborted. */
export function keepAlive(options: KeepOptions): Kept {
  const { clock, lock, lockId, agent, grantedAt = clock.now() } = options;
  const lost = new AbortController();
  const over = new AbortController();
  const loop = beatUntil(over.signal, { ...options, grantedAt }).then((outcome) => {
    if (outcome === 'lost') lost.abort(new ReeveError('LOCK_LOST', { lock, lockId, agent }));
  });
  return {
    signal: lost.signal,
    stop: () => {
      over.abort();
      return loop;
    },
  };
}

async function beatUntil(stopped: AbortSignal, options: KeepOptions & { readonly grantedAt: number }) {
  const { clock, intervalMs, onTrouble } = options;
  let leaseMs = options.leaseMs;
  let endsAt = options.grantedAt + leaseMs;
  const pace = () => Math.min(intervalMs, leaseMs / BEATS_PER_LEASE);
  let pauseMs = pace();
  for (;;) {
    await clock.sleep(Math.min(pauseMs, Math.max(0, endsAt - clock.now())), stopped);
    if (stopped.aborted) return 'stopped';
    if (clock.now() >= endsAt) return 'lost';
    const askedAt = clock.now();
    try {
      const answer = await inTime(options, endsAt - askedAt, stopped);
      if (stopped.aborted) return 'stopped';
      if (answer.outcome === 'lost') return 'lost';
      ({ leaseMs } = answer);
      // Counted from the question, not from the answer: the lease began somewhere between the two.
      endsAt = askedAt + leaseMs;
      pauseMs = pace();
    } catch (error) {
      if (stopped.aborted) return 'stopped';
      onTrouble?.(error);
      pauseMs = pace() / RETRIES_PER_INTERVAL;
    }
  }
}

/** A beat that hangs must not outlast the lease. */
async function inTime({ beat, clock }: KeepOptions, ms: number, stopped: AbortSignal): Promise<BeatOutcome> {
  const answered = new AbortController();
  const hurry = new AbortController();
  const late = clock.sleep(ms, AbortSignal.any([answered.signal, stopped])).then((): BeatOutcome => {
    hurry.abort();
    return { outcome: 'lost' };
  });
  try {
    return await Promise.race([beat(AbortSignal.any([hurry.signal, stopped])), late]);
  } finally {
    answered.abort();
  }
}
