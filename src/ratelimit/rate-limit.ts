import { ReeveError } from '../errors.ts';
import type { Scripts } from '../redis/script.ts';
import { take, type Verdict } from './scripts.ts';

export interface Limit {
  /** In the long run; 0 is no limit. */
  readonly perMinute: number;
  /** At once, after a rest. */
  readonly burst: number;
}

const MINUTE_US = 60_000_000;

/** Counts one call against the limit that this key keeps. */
export async function takeTurn(scripts: Scripts, key: string, { perMinute, burst }: Limit): Promise<Verdict> {
  if (perMinute === 0) return { outcome: 'admitted', left: Number.POSITIVE_INFINITY };
  return scripts.run(take, { limit: key }, { interval_us: MINUTE_US / perMinute, burst });
}

/** The same where being limited is a refusal. `who` and `what` are for the wording. */
export async function admit(
  scripts: Scripts,
  key: string,
  limit: Limit,
  { who, what }: { readonly who: string; readonly what: string },
): Promise<void> {
  const verdict = await takeTurn(scripts, key, limit);
  if (verdict.outcome === 'admitted') return;
  const retryAfterSeconds = Math.ceil(verdict.retryAfterMs) / 1000;
  throw new ReeveError('RATE_LIMITED', { who, what, perMinute: limit.perMinute, retryAfterSeconds });
}
