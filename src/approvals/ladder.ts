import { type Delegation, MOST_HOPS, route } from './delegation.ts';
import { allCanBeMet, inPlaceOf, type Need, without } from './need.ts';
import { canReview, goesBy, hasRole, type Person, spelt } from './people.ts';
import type { Petition } from './policy.ts';

/** One who could answer instead, and why just that one. */
export interface Rung {
  readonly person: Person;
  readonly as: 'delegate' | 'manager' | 'on call' | 'colleague';
}

export interface Climb {
  readonly people: readonly Person[];
  readonly delegations: readonly Delegation[];
  readonly petition: Petition;
  readonly at: string;
  /** They never answer, however high. */
  readonly makers: readonly string[];
  readonly onCall: string;
}

/** Who comes after somebody: whoever answers in that one's place, the managers one after the other, whoever is on call. */
export function rungsAbove(somebody: string, climb: Climb): Rung[] {
  const able = climb.people.filter((person) => isAble(person, climb.makers));
  const isBarred = (id: string) => !able.some((person) => goesBy(person, id));
  const { to } = route(somebody, { ...climb, isBarred });
  const found = (id: string, as: Rung['as']) =>
    able.filter((person) => goesBy(person, id)).map((person): Rung => ({ person, as }));
  const onCall = able.filter((person) => goesBy(person, climb.onCall) || person.roles.includes(climb.onCall));
  const all = [
    ...found(to, 'delegate'),
    ...managersOf(somebody, climb.people).flatMap((id) => found(id, 'manager')),
    ...onCall.map((person): Rung => ({ person, as: 'on call' })),
  ];
  return all.filter(({ person }, at) => all.findIndex((one) => one.person.id === person.id) === at);
}

/** Others whom a policy that this one was asked for means as well: they came, or came to the role, after the question. */
export function colleaguesOf(somebody: string, needs: readonly Need[], { people, makers }: Climb): Rung[] {
  const places = needs.filter(({ voters }) => voters.includes(somebody));
  const isMeant = (person: Person) => places.some(({ roles }) => hasRole(person, rolesAskedFor(roles, somebody)));
  return people
    .filter((person) => isAble(person, makers) && isMeant(person))
    .map((person): Rung => ({ person, as: 'colleague' }));
}

/** Those for which somebody was asked, where it was for some of them. */
function rolesAskedFor(roles: Need['roles'], somebody: string): string[] {
  const own = roles.filter(({ voters }) => voters.includes(somebody));
  return (own.length > 0 ? own : roles).map(({ role }) => role);
}

/** Who can do something with a question: a person who is here, reviews, and did not make it. */
const isAble = (person: Person, makers: readonly string[]): boolean =>
  canReview(person) && hasRole(person, []) && !makers.some((maker) => goesBy(person, maker));

function managersOf(somebody: string, people: readonly Person[]): string[] {
  const chain: string[] = [];
  for (let at: string | undefined = somebody; at !== undefined && chain.length <= MOST_HOPS; ) {
    const manager: string | undefined = people.find((person) => goesBy(person, at!))?.manager;
    if (manager === undefined || [somebody, ...chain].some((one) => spelt(one) === spelt(manager))) break;
    chain.push(manager);
    at = manager;
  }
  return chain;
}

/** Somebody who was asked about the same content, and how that stands. */
export interface AskedAlready {
  readonly reviewer: string;
  readonly isOpen: boolean;
  readonly tier: number;
}

export interface Situation {
  readonly kind: 'escalate' | 'reassign';
  readonly reviewer: string;
  readonly rungs: readonly Rung[];
  /** Asked only in the place of one who cannot answer any more, where nobody is above and the others would not be enough. */
  readonly colleagues: readonly Rung[];
  readonly needs: readonly Need[];
  /** Everybody else. */
  readonly others: readonly AskedAlready[];
}

export type NextStep =
  | { readonly outcome: 'ask'; readonly rung: Rung; readonly needs: readonly Need[] }
  | { readonly outcome: 'close'; readonly needs: readonly Need[] }
  | { readonly outcome: 'stay'; readonly needs: readonly Need[] };

/**
 * What happens to a question that is not answered. The next one up who was not asked yet is asked; a question is let go if
 * somebody above has it already and enough others are left; of one who cannot answer any more a
 * colleague is asked who came since; and if there is nobody it stays. Whoever takes a place is
 * new to the task, so that a quorum is never less people than it was.
 */
export function nextStep({ kind, reviewer, rungs, colleagues, needs, others }: Situation): NextStep {
  const rest = needs.map((need) => without(need, reviewer));
  const known = ({ person }: Rung) => others.find((one) => goesBy(person, one.reviewer));
  const isAboveAsked = rungs.some((rung) => {
    const other = known(rung);
    return other?.isOpen === true && other.tier > 0;
  });
  if (kind === 'escalate' && isAboveAsked && allCanBeMet(rest)) return { outcome: 'close', needs: rest };
  const ask = (rung: Rung): NextStep => {
    const asStandIn = rung.as !== 'delegate';
    return { outcome: 'ask', rung, needs: inPlaceOf(needs, reviewer, rung.person.id, { asStandIn }) };
  };
  const rung = rungs.find((one) => known(one) === undefined);
  if (rung) return ask(rung);
  if (kind === 'escalate') return { outcome: 'stay', needs };
  if (allCanBeMet(rest)) return { outcome: 'close', needs: rest };
  const colleague = colleagues.find((one) => known(one) === undefined);
  return colleague ? ask(colleague) : { outcome: 'stay', needs };
}
