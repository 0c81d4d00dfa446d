import type { ReviewerPolicy } from '../reviewer-policy.ts';
import { type Delegation, type Route, route } from './delegation.ts';
import { canBeMet, type Need } from './need.ts';
import { canReview, goesBy, hasRole, type Person } from './people.ts';
import { allowsUnasked, matching, type Petition, type PolicyInForce } from './policy.ts';

export interface Asked extends Route {
  readonly name: string;
}

export type Assignment =
  | { readonly outcome: 'unasked'; readonly policies: readonly PolicyRef[]; readonly because: string }
  | {
      readonly outcome: 'ask';
      readonly policies: readonly PolicyRef[];
      readonly needs: readonly Need[];
      readonly asked: readonly Asked[];
      readonly notes: readonly string[];
      /** How long they have, where a policy says so. */
      readonly dueSeconds?: number | undefined;
      readonly because: string;
    }
  | { readonly outcome: 'nobody'; readonly policies: readonly PolicyRef[]; readonly because: string };

export interface PolicyRef {
  readonly policy_id: string;
  readonly version: number;
}

export interface Question {
  readonly petition: Petition;
  readonly policies: readonly PolicyInForce[];
  readonly people: readonly Person[];
  readonly delegations: readonly Delegation[];
  /** Ids of those who made it: they never agree to it themselves. */
  readonly makers: readonly string[];
  /** A task of the file passes below this where no policy is about it; others never do. */
  readonly unaskedBelow: number | undefined;
  /** Whether anything may pass unasked at all: the live flag. */
  readonly allowsUnasked: boolean;
  readonly at: string;
}

/** Who answers where no policy is about a task. */
const ONE_PERSON: PolicyInForce = {
  policy_id: 'default',
  version: 1,
  source: 'file',
  description: 'no policy is about it',
  enabled: true,
  task_types: [],
  resource_patterns: [],
  min_approvers: 1,
  required_roles: [],
  risk_threshold: 0,
};

/** Policies that match, the people they ask for, delegations, what may pass unasked, how many must agree: in this order. */
export function assign(question: Question): Assignment {
  const { petition, policies } = question;
  const found = matching(policies, petition);
  const refs = found.map(({ policy_id, version }) => ({ policy_id, version }));
  const unasked = unaskedBecause(question, found);
  if (unasked) return { outcome: 'unasked', policies: refs, because: unasked };
  const strict = found.length > 0 ? found : [ONE_PERSON];
  const routes = routesOf(question);
  const needs = strict.map((policy) => needOf(policy, question, routes));
  const stuck = needs.find((need) => !canBeMet(need));
  if (stuck) return { outcome: 'nobody', policies: refs, because: shortage(stuck) };
  const names = new Map(question.people.map(({ id, name }) => [id, name]));
  const isMeant = (person: Person) => strict.some(({ required_roles }) => hasRole(person, required_roles));
  const meant = question.people.filter((person) => routes.has(person.id) && isMeant(person));
  const chosen = meant.map(({ id }) => routes.get(id)!).sort((a, b) => b.chain.length - a.chain.length);
  // Two who delegate to the same person ask that person once; who is meant in person is asked as such.
  const asked = [...new Map(chosen.map((one) => [one.to, one])).values()];
  return {
    outcome: 'ask',
    policies: refs,
    needs,
    asked: asked.map((one) => ({ ...one, name: names.get(one.to) ?? one.to })),
    dueSeconds: shortest(found),
    notes: [...routes.values()].flatMap(({ note }) => (note ? [note] : [])),
    because: wanted(needs, found),
  };
}

function unaskedBecause(question: Question, found: readonly PolicyInForce[]): string | undefined {
  const { petition, unaskedBelow } = question;
  if (!question.allowsUnasked) return undefined;
  if (found.length > 0) {
    if (!found.every((policy) => allowsUnasked(policy, petition))) return undefined;
    return `${found.map(({ policy_id }) => policy_id).join(', ')} let${found.length > 1 ? '' : 's'} it pass at risk ${petition.risk}`;
  }
  if (unaskedBelow === undefined || petition.risk >= unaskedBelow) return undefined;
  return `no policy is about it, and its risk ${petition.risk} is below ${unaskedBelow}`;
}

/** For everyone who may be asked: who answers. The makers are left out with all who would answer in their place. */
function routesOf(question: Question): Map<string, Route> {
  const { people, delegations, petition, makers, at } = question;
  const able = people.filter((person) => canReview(person) && !makers.some((maker) => goesBy(person, maker)));
  const isBarred = (id: string) => !able.some((person) => goesBy(person, id));
  return new Map(able.map(({ id }) => [id, canonical(route(id, { delegations, petition, at, isBarred }), able)]));
}

/** However a delegation spells the id of a person. */
function canonical(found: Route, able: readonly Person[]): Route {
  return { ...found, to: able.find((person) => goesBy(person, found.to))?.id ?? found.to };
}

function shortest(policies: readonly PolicyInForce[]): number | undefined {
  const given = policies.flatMap(({ due_seconds }) => due_seconds ?? []);
  return given.length > 0 ? Math.min(...given) : undefined;
}

function needOf(policy: PolicyInForce, { people }: Question, routes: ReadonlyMap<string, Route>): Need {
  const { policy_id, version, min_approvers: min, required_roles } = policy;
  const meant = (roles: readonly string[]) =>
    people.filter((person) => routes.has(person.id) && hasRole(person, roles)).map(({ id }) => id);
  const votersWith = (roles: readonly string[]) => [...new Set(meant(roles).map((id) => routes.get(id)!.to))].sort();
  const places = Map.groupBy(meant(required_roles), (id) => routes.get(id)!.to);
  const isOwn = ([voter, of]: readonly [string, readonly string[]]) => of.length === 1 && of[0] === voter;
  return {
    policy_id,
    version,
    min,
    voters: votersWith(required_roles),
    roles: required_roles.map((role) => ({ role, voters: votersWith([role]) })),
    by: Object.fromEntries([...places].filter((place) => !isOwn(place))),
    stand_ins: [],
  };
}

function shortage({ policy_id, min, voters, roles }: Need): string {
  const missing = roles.filter((role) => role.voters.length === 0).map(({ role }) => role);
  const policy =
    policy_id === ONE_PERSON.policy_id ? 'somebody else must agree' : `policy ${policy_id} asks for ${min}`;
  if (missing.length > 0) return `${policy}, and nobody else has the role ${missing.join(' or ')}`;
  return `${policy}, and ${voters.length === 0 ? 'nobody' : `only ${voters.join(', ')}`} can`;
}

function wanted(needs: readonly Need[], found: readonly ReviewerPolicy[]): string {
  if (found.length === 0) return 'no policy is about it: one person must agree';
  const each = needs.map(({ policy_id, min, roles }) => {
    const of = roles.length > 0 ? ` with ${roles.map(({ role }) => role).join(' and ')}` : '';
    return `${policy_id} asks for ${min} ${min > 1 ? 'people' : 'person'}${of}`;
  });
  return each.join('; ');
}
