import type { CriticalityRow } from '../reviewer-policy.ts';
import { usersOf } from './criticality.ts';
import type { NamedResource } from './patterns.ts';
import { doublings, type Finding } from './risk.ts';

/** Beyond so many it is "many"; what is behind them need not be looked at. */
export const MANY = 63;
/** For each system that is said to break with a resource. */
const PER_USER = 5;
const MOST_BY_USERS = 40;

export interface Affected {
  /** Tasks that wait for it, directly or not, and those that work on the same things. */
  readonly tasks: number;
  readonly resources: readonly NamedResource[];
}

/** Who would feel it if it went wrong: 60 by tasks, 40 by what the table says depends on its resources. */
export function blastRadius({ tasks, resources }: Affected, table: readonly CriticalityRow[]): Finding {
  const users = usersOf(resources, table);
  const counted = Math.min(tasks, MANY);
  const value = doublings(counted) + Math.min(MOST_BY_USERS, users.length * PER_USER);
  const many = `${counted}${tasks >= MANY ? ' or more' : ''} task${tasks === 1 ? '' : 's'}`;
  return {
    value,
    because: `${many} wait for it or work on the same things${users.length > 0 ? `; ${users.slice(0, 5).join(', ')} depend on them` : ''}`,
  };
}

/** Everything that can be reached from one, nearest first, at most so many. */
export async function reachable(
  from: string,
  next: (ids: readonly string[]) => Promise<readonly string[]> | readonly string[],
  most = MANY,
): Promise<Set<string>> {
  const seen = new Set([from]);
  for (let level: readonly string[] = [from]; level.length > 0 && seen.size <= most; ) {
    const found = new Set(await next(level));
    level = [...found].filter((id) => !seen.has(id)).slice(0, most + 1 - seen.size);
    for (const id of level) seen.add(id);
  }
  seen.delete(from);
  return seen;
}
