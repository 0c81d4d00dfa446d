import { backOff } from '../clock.ts';
import type { ErrorCode } from '../errors.ts';

/** How a source is, in one word. Each has its own pace: what a person must mend is asked seldom. */
export const SOURCE_STATES = {
  new: { says: 'not asked yet', baseMs: 0, maxMs: 0 },
  idle: { says: 'in step', baseMs: 0, maxMs: 0 },
  held: { says: 'a change waits for a person', baseMs: 0, maxMs: 0 },
  waiting: { says: 'a limit is used up; asked again when it ends', baseMs: 60_000, maxMs: 3_600_000 },
  unreachable: { says: 'does not answer; tried again', baseMs: 15_000, maxMs: 900_000 },
  empty: { says: 'has no commit yet', baseMs: 300_000, maxMs: 3_600_000 },
  missing: { says: 'not found', baseMs: 900_000, maxMs: 6 * 3_600_000 },
  refused: { says: 'refused the login', baseMs: 900_000, maxMs: 3_600_000 },
  replaced: { says: 'is another repository now', baseMs: 3_600_000, maxMs: 6 * 3_600_000 },
  failed: { says: 'failed', baseMs: 60_000, maxMs: 1_800_000 },
} as const;
export type SourceState = keyof typeof SOURCE_STATES;

const BY_CODE: Partial<Record<ErrorCode, SourceState>> = {
  SOURCE_RATE_LIMITED: 'waiting',
  SOURCE_UNREACHABLE: 'unreachable',
  SOURCE_MOVED: 'unreachable',
  REDIS_UNAVAILABLE: 'unreachable',
  REDIS_REPLY_UNKNOWN: 'unreachable',
  SOURCE_EMPTY: 'empty',
  SOURCE_MISSING: 'missing',
  ASSETS_UNREADABLE: 'missing',
  SOURCE_UNAUTHORIZED: 'refused',
  SOURCE_FORBIDDEN: 'refused',
  SOURCE_REPLACED: 'replaced',
};

export const stateOf = (code: ErrorCode): SourceState => BY_CODE[code] ?? 'failed';

export interface Pace {
  readonly state: SourceState;
  /** How many times in a row it has failed. */
  readonly failures: number;
  /** What the source asked for. */
  readonly retryAfterSeconds?: number | undefined;
  /** The pause when all is well, jitter included. */
  readonly scheduledMs: number;
  readonly random?: () => number;
}

/** How long to leave the source alone: the schedule when it is well, growing pauses when not, never less than it asked for. */
export function pauseMs({ state, failures, retryAfterSeconds, scheduledMs, random }: Pace): number {
  const { baseMs, maxMs } = SOURCE_STATES[state];
  if (baseMs === 0) return scheduledMs;
  const asked = (retryAfterSeconds ?? 0) * 1000;
  if (state === 'waiting' && failures <= 1 && asked > 0) return asked;
  return Math.max(asked, backOff(Math.max(0, failures - 1), baseMs, maxMs, random));
}
