import type {
  AcquireOutcome,
  Blocked,
  BlockingHolder,
  Grant,
  HeartbeatOutcome,
  LockRef,
  RefusedWhy,
  ReleaseOutcome,
} from './lock.ts';
import type { Wanted } from './lock-scripts.ts';

export interface Asked {
  readonly wanted: readonly Wanted[];
  readonly agent: string;
  readonly lockId: string;
}

/** Leases that are over stand in the way: they must be reaped, then the call made again. */
export interface Overdue {
  readonly outcome: 'overdue';
  readonly lock: LockRef;
  readonly agents: readonly string[];
}

/** What acquire.lua answered, in words. */
export function acquireOutcome(reply: readonly string[], asked: Asked): AcquireOutcome | Overdue {
  const [word, ...rest] = reply;
  const { lockId } = asked;
  switch (word) {
    case 'GRANTED':
      return { outcome: 'granted', lockId, grants: grants(rest, asked), again: rest[0] === '1' };
    case 'QUEUED': {
      const expected = Number(rest[3]);
      return {
        outcome: 'queued',
        lockId,
        position: Number(rest[1]),
        since: Number(rest[2]),
        expectedWaitMs: expected < 0 ? undefined : expected,
        blocked: blocked(lockAt(asked, rest[0]), rest.slice(4)),
      };
    }
    case 'HELD':
      return { outcome: 'held', lockId, blocked: blocked(lockAt(asked, rest[0]), rest.slice(1)) };
    case 'FULL':
      return { outcome: 'full', lock: lockAt(asked, rest[0]), depth: Number(rest[1]) };
    case 'EXPIRED':
      return { outcome: 'overdue', lock: lockAt(asked, rest[0]), agents: [...new Set(rest.slice(1))] };
    case 'SPENT':
      return { outcome: 'spent', lock: lockAt(asked, rest[0]), lockId };
    case 'REFUSED':
      return { outcome: 'refused', lock: lockAt(asked, rest[0]), why: rest[1] as RefusedWhy };
    case 'DEADLOCK': {
      const cycle: unknown = JSON.parse(rest[2] as string);
      return { outcome: 'deadlock', lock: lockAt(asked, rest[0]), since: Number(rest[1]), cycle };
    }
    case 'EVICTED':
      return { outcome: 'evicted', lockId };
    default:
      throw new Error(`acquire.lua answered ${word}`);
  }
}

export function heartbeatOutcome([word, first, second]: readonly string[], asked: Asked): HeartbeatOutcome {
  if (word === 'LOST') return { outcome: 'lost', lock: lockAt(asked, first) };
  return { outcome: 'extended', expiresAt: first as string, heartbeats: Number(second) };
}

export const releaseOutcomes = (reply: readonly string[], { wanted }: Asked): ReleaseOutcome[] =>
  wanted.map(({ lock }, at) => ({
    lock,
    outcome: (reply[at] as string).toLowerCase() as ReleaseOutcome['outcome'],
  }));

function grants([, acquiredAt, expiresAt, ...tokens]: readonly string[], { wanted, agent, lockId }: Asked): Grant[] {
  return wanted.map(({ lock, mode = 'exclusive' }, at) => ({
    lock,
    lockId,
    agent,
    mode,
    token: Number(tokens[at]),
    acquiredAt: acquiredAt as string,
    expiresAt: expiresAt as string,
  }));
}

function blocked(lock: LockRef, [waiting, freeInMs, ...flat]: readonly string[]): Blocked {
  const holders: BlockingHolder[] = [];
  for (let at = 0; at + 3 < flat.length; at += 4) {
    const [agent, acquiredAt, expiresAt, purpose] = flat.slice(at) as [string, string, string, string];
    holders.push({ agent, purpose, acquiredAt, expiresAt });
  }
  return { lock, holders, waiting: Number(waiting), freeInMs: Number(freeInMs) };
}

/** Scripts count from one. */
const lockAt = ({ wanted }: Asked, n: string | undefined): LockRef => (wanted[Number(n) - 1] as Wanted).lock;
