import { z } from 'zod';
import {
  type AcquireOutcome,
  formatLock,
  type Grant,
  LOCK_MODES,
  type LockRef,
  type RefusedWhy,
} from '../coordinator/locks/lock.ts';
import { holdOfBlocked, holdOfView } from '../coordinator/locks/lock-hold.ts';
import type { Locks } from '../coordinator/locks/locks.ts';
import { ReeveError } from '../errors.ts';
import { holdSchema } from '../hold.ts';

const grant = z
  .object({
    lock: z.string(),
    mode: z.enum(LOCK_MODES),
    fencing_token: z.int().describe('Rises with each grant of the lock; put it on every write made under it'),
    acquired_at: z.string(),
    expires_at: z.string(),
  })
  .meta({ id: 'Grant' });

/** Of a lock that is held, or of a place in its line. */
export const acquired = z.object({
  outcome: z.enum(['held', 'queued']),
  lock: z.string(),
  lock_id: z.string().describe('Names this request and its grant, in heartbeats and in the release'),
  agent: z.string(),
  mode: z.enum(LOCK_MODES).optional(),
  fencing_token: z.int().optional(),
  acquired_at: z.string().optional(),
  expires_at: z.string().optional(),
  heartbeat_seconds: z.number().optional().describe('Renew it this often'),
  grants: z.array(grant).optional().describe('One for each lock, when several were asked for'),
  position: z.int().optional().describe('Place in line; 1 is next'),
  expected_wait_seconds: z.number().nullable().optional(),
  ask_again_seconds: z
    .number()
    .optional()
    .describe('Ask again with the same lock_id before this, or the place is lost'),
  hold: holdSchema.optional().describe('Why it is not held yet'),
});

export interface Asking {
  readonly lock: LockRef;
  readonly agent: string;
  readonly heartbeatSeconds: number;
  readonly now: number;
}

/** What is no refusal is an answer; the rest is an error that carries why, and what to do. */
export function answerOf(outcome: AcquireOutcome, asking: Asking): z.input<typeof acquired> {
  const { agent, now } = asking;
  switch (outcome.outcome) {
    case 'granted':
      return heldAnswer(outcome, asking);
    case 'queued': {
      const { lockId, position, expectedWaitMs, blocked } = outcome;
      return {
        outcome: 'queued',
        lock: formatLock(blocked.lock),
        lock_id: lockId,
        agent,
        position,
        expected_wait_seconds: expectedWaitMs === undefined ? null : expectedWaitMs / 1000,
        ask_again_seconds: ASK_AGAIN_SECONDS,
        hold: holdOfBlocked(blocked, now, { agent, position, expectedWaitMs }),
      };
    }
    case 'held': {
      const hold = holdOfBlocked(outcome.blocked, now, { agent });
      const lock = formatLock(outcome.blocked.lock);
      throw new ReeveError('LOCK_HELD', { lock, agent, because: hold.because, hold, lock_id: outcome.lockId });
    }
    case 'full':
      throw new ReeveError('QUEUE_FULL', {
        lock: formatLock(outcome.lock),
        agent,
        depth: outcome.depth,
        retryAfterSeconds: FULL_RETRY_SECONDS,
      });
    case 'deadlock': {
      const { lock, cycle } = outcome;
      throw new ReeveError('DEADLOCK_DETECTED', { lock: formatLock(lock), agent, cycle, circle: circleOf(cycle) });
    }
    case 'refused':
      throw new ReeveError('LOCK_REFUSED', refusal(formatLock(outcome.lock), agent, outcome.why));
    case 'spent':
      throw new ReeveError('LOCK_LOST', { lock: formatLock(outcome.lock), agent, lockId: outcome.lockId });
    case 'evicted':
      throw new ReeveError('WAIT_OVER', {
        lock: 'the lock',
        agent,
        why: 'It did not ask again in time, and lost its place.',
      });
    case 'limited': {
      const retryAfterSeconds = Math.ceil(outcome.retryAfterMs) / 1000;
      throw new ReeveError('RATE_LIMITED', { who: agent, what: 'asking for new locks', retryAfterSeconds });
    }
  }
}

/** A refusal that came without its reason gets it from a look at the lock: if someone holds it, who, and until when. */
export async function withHold<T>(locks: Locks, lock: LockRef, agent: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ReeveError) || !REFUSED.has(error.row.status) || 'hold' in error.details) throw error;
    const hold = holdOfView(await locks.inspect(lock), { agent });
    throw hold ? new ReeveError(error.code, { ...error.details, hold }, { cause: error }) : error;
  }
}
const REFUSED = new Set([409, 423, 503, 504]);

/** Waiters that poll rather than listen lose nothing by asking this often. */
const ASK_AGAIN_SECONDS = 2;
const FULL_RETRY_SECONDS = 5;

const REFUSALS: Record<RefusedWhy, { readonly why: string; readonly fix: string }> = {
  foreign: {
    why: 'another agent holds it, or waits for it, under this lock_id',
    fix: 'Choose a lock_id that nobody else has, or leave it out.',
  },
  upgrade: {
    why: 'others share it or wait for it, and two who both wanted more would wait for each other for ever',
    fix: 'Give the shared lock back, then ask for the exclusive one.',
  },
  unregistered: {
    why: 'nobody said how much this agent may do at once',
    fix: 'Say it: reeve lock capacity {lock} --max-tasks 1',
  },
  draining: { why: 'it finishes what it has and takes nothing new', fix: 'Use another agent.' },
  offline: {
    why: 'it is offline',
    fix: 'Use another agent, or bring it back: reeve lock capacity {lock} --status active',
  },
};

function refusal(lock: string, agent: string, because: RefusedWhy) {
  const { why, fix } = REFUSALS[because];
  return { lock, agent, why, fix: fix.replace('{lock}', lock) };
}

function heldAnswer(
  { lockId, grants }: AcquireOutcome & { outcome: 'granted' },
  { agent, heartbeatSeconds }: Asking,
): z.input<typeof acquired> {
  const all = grants.map(grantAnswer);
  const [first] = all as [z.input<typeof grant>];
  return {
    outcome: 'held',
    ...first,
    lock_id: lockId,
    agent,
    heartbeat_seconds: heartbeatSeconds,
    ...(all.length > 1 && { grants: all }),
  };
}

const grantAnswer = ({ lock, mode, token, acquiredAt, expiresAt }: Grant): z.input<typeof grant> => ({
  lock: formatLock(lock),
  mode,
  fencing_token: token,
  acquired_at: acquiredAt,
  expires_at: expiresAt,
});

/** ann waits for bob (task:T-1), bob waits for ann (task:T-2). */
function circleOf(cycle: unknown): string {
  const step = z.object({ agent: z.string(), behind: z.string(), waits_for: z.string() });
  const steps = z.array(step).safeParse(cycle);
  if (!steps.success) return 'unknown';
  return steps.data.map(({ agent, behind, waits_for }) => `${agent} for ${behind} (${waits_for})`).join(', ');
}
