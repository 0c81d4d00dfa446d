import type { AssetId } from '../redis/ids.ts';
import type { Asset } from './asset.ts';
import type { PathRecord, Problem } from './path-record.ts';

/** A path that says an id is its own. */
export interface Claim {
  readonly path: string;
  readonly id: AssetId;
  /** Set when the file was read just now; else it is as it was. */
  readonly asset?: Asset;
  readonly warnings?: readonly Problem[];
  readonly record?: PathRecord;
  /** Its content cannot be used now; it claims what it served last. */
  readonly isFallback?: boolean;
}

export interface Resolved {
  readonly winners: ReadonlyMap<string, Claim>;
  readonly losers: readonly { readonly claim: Claim; readonly winner: Claim }[];
}

/**
 * Who has an id that several files claim: the path that serves it already, so that nothing flips to and fro; otherwise a
 * readable file before an unreadable one, then the path that comes first in code unit order. Ids that differ only in case
 * are one id: people and file systems mix them up.
 */
export function resolveClaims(claims: readonly Claim[], isIncumbent: (claim: Claim) => boolean): Resolved {
  const winners = new Map<string, Claim>();
  const losers: { claim: Claim; winner: Claim }[] = [];
  for (const [key, rivals] of Map.groupBy(claims, ({ id }) => id.toLowerCase())) {
    const [winner, ...rest] = rivals.length === 1 ? rivals : rivals.toSorted(byRank(isIncumbent));
    if (!winner) continue;
    winners.set(key, winner);
    for (const claim of rest) losers.push({ claim, winner });
  }
  return { winners, losers };
}

const byRank = (isIncumbent: (claim: Claim) => boolean) => (a: Claim, b: Claim) =>
  Number(isIncumbent(b)) - Number(isIncumbent(a)) ||
  Number(a.isFallback ?? false) - Number(b.isFallback ?? false) ||
  (a.path < b.path ? -1 : 1);
