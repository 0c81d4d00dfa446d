import { type Delegation, route } from './delegation.ts';
import type { Need } from './need.ts';
import { canReview, goesBy, hasRole, type Person } from './people.ts';
import type { Petition } from './policy.ts';

/** One who answers, by whose right, and what that right depends on at this moment. */
export interface Standing {
  readonly people: readonly Person[];
  readonly delegations: readonly Delegation[];
  readonly petition: Petition;
  readonly needs: readonly Need[];
  /** From the one who was meant to the one who was asked. */
  readonly chain: readonly string[];
  readonly at: string;
  /** A person passed it on by hand: no rule need say so, too. */
  readonly isByHand: boolean;
}

/**
 * Why somebody who was asked must not answer any more; undefined if nothing speaks against it. Asked with every answer:
 * between question and answer roles are taken away, people leave, and delegations end.
 */
export function whyNot(by: string, standing: Standing): string | undefined {
  const { people, chain, needs, isByHand } = standing;
  const person = people.find((one) => goesBy(one, by));
  if (!person || !canReview(person)) return 'only people answer, and only those who are still here';
  if (needs.some(({ stand_ins }) => stand_ins.includes(person.id))) {
    return hasRole(person, []) ? undefined : `${by} reviews nothing any more`;
  }
  const [first = by] = chain;
  const principal = people.find((one) => goesBy(one, first));
  if (!principal?.isActive) return `${first}, in whose place it would be answered, is not here any more`;
  const wanted = needs.map(({ roles }) => roles.map(({ role }) => role));
  if (!wanted.some((roles) => hasRole(principal, roles))) return `${first} has no role that was asked for any more`;
  if (chain.length < 2 || isByHand) return undefined;
  const isBarred = (id: string) => !people.some((one) => goesBy(one, id) && canReview(one));
  const { to } = route(first, { ...standing, isBarred });
  return goesBy(person, to) ? undefined : `${first} does not delegate this to ${by} any more`;
}
