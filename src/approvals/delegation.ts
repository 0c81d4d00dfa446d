import { z } from 'zod';
import { matches, matchesAnyResource } from './patterns.ts';
import { goesBy, type Person, spelt } from './people.ts';
import type { Petition } from './policy.ts';

export const conditionsSchema = z
  .strictObject({
    task_types: z.array(z.string().min(1).max(300)).max(100).optional().describe('Types of task (globs)'),
    resource_patterns: z.array(z.string().min(1).max(300)).max(100).optional().describe('Resources (globs)'),
    risk_above: z.number().min(0).max(100).optional().describe('Only what is riskier than this'),
    risk_below: z.number().min(0).max(100).optional().describe('Only what is less risky than this'),
  })
  .describe('When it holds; all that is named must be so');
export type Conditions = z.output<typeof conditionsSchema>;

export const DELEGATION_KINDS = ['instead', 'follow'] as const;
export type DelegationKind = (typeof DELEGATION_KINDS)[number];

/** Who answers in whose place, or whose approval somebody goes along with; and when. */
export interface Delegation {
  readonly kind: DelegationKind;
  readonly policy_id: string;
  readonly owner_id: string;
  readonly delegate_to: string;
  readonly conditions: Conditions;
  /** Whether the delegate's own delegations are followed. */
  readonly cascade: boolean;
  readonly active: boolean;
  readonly created_at: string;
  readonly expires_at?: string | undefined;
}

/** Longer chains are somebody's mistake: the one who was asked first answers. */
export const MOST_HOPS = 10;

export interface Route {
  /** Who answers in the end. */
  readonly to: string;
  /** Everyone on the way, the first and the last included. */
  readonly chain: readonly string[];
  /** Why it does not go where it seems to. */
  readonly note?: string | undefined;
}

export interface Routing {
  readonly delegations: readonly Delegation[];
  readonly petition: Petition;
  readonly at: string;
  /** Those who must not answer: the author, agents, people who left. */
  readonly isBarred: (person: string) => boolean;
}

/**
 * Follows delegations depth first, the oldest of each person first. A circle is left by the last one before it, or not
 * entered at all if it begins with the first; what ends at someone barred is given back along the way.
 */
export function route(owner: string, routing: Routing): Route {
  const path = [owner];
  let note: string | undefined;
  for (let at = owner; ; ) {
    const hop = nextHop(at, routing);
    if (!hop) break;
    const seen = path.findIndex((one) => spelt(one) === spelt(hop.delegate_to));
    if (seen >= 0) {
      note = `delegations go in a circle: ${[...path.slice(seen), hop.delegate_to].join(' → ')}`;
      path.length = Math.max(1, seen);
      break;
    }
    if (path.length > MOST_HOPS) {
      note = `more than ${MOST_HOPS} delegations in a row`;
      path.length = 1;
      break;
    }
    path.push(hop.delegate_to);
    if (!hop.cascade) break;
    at = hop.delegate_to;
  }
  while (path.length > 1 && routing.isBarred(path.at(-1)!)) {
    note = `${path.pop()} may not answer`;
  }
  return { to: path.at(-1)!, chain: path, ...(note && { note }) };
}

function nextHop(person: string, { delegations, petition, at }: Routing): Delegation | undefined {
  return delegations
    .filter((one) => one.kind === 'instead' && spelt(one.owner_id) === spelt(person))
    .filter((one) => isInForce(one, at) && holds(one.conditions, petition))
    .sort(byAge)[0];
}

/**
 * Those who go along with what this person approves, the oldest such word first. Only with what that one says in person: an
 * approval that was itself implied implies nothing, so that circles end where they begin.
 */
export function followersOf(person: Person, { delegations, petition, at }: Omit<Routing, 'isBarred'>): string[] {
  const words = delegations
    .filter((one) => one.kind === 'follow' && goesBy(person, one.delegate_to) && !goesBy(person, one.owner_id))
    .filter((one) => isInForce(one, at) && holds(one.conditions, petition))
    .sort(byAge);
  return [...new Set(words.map(({ owner_id }) => owner_id))];
}

const byAge = (a: Delegation, b: Delegation): number =>
  compare(a.created_at, b.created_at) || compare(a.policy_id, b.policy_id);

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

export const isInForce = ({ active, expires_at }: Delegation, at: string): boolean =>
  active && (expires_at === undefined || Date.parse(expires_at) > Date.parse(at));

function holds(conditions: Conditions, { type, resources, risk }: Petition): boolean {
  const { task_types, resource_patterns, risk_above, risk_below } = conditions;
  return (
    (!task_types || task_types.some((pattern) => matches(pattern, type))) &&
    (!resource_patterns || resources.some((one) => matchesAnyResource(resource_patterns, one))) &&
    (risk_above === undefined || risk > risk_above) &&
    (risk_below === undefined || risk < risk_below)
  );
}
