import type { ReviewerPolicy } from '../reviewer-policy.ts';
import { matches, matchesAnyResource, type NamedResource } from './patterns.ts';

/** A policy as it is in force: an older version of it stays known, for what was decided by it. */
export interface PolicyInForce extends ReviewerPolicy {
  readonly version: number;
  /** Where it stands: a policy of the file can only be changed there. */
  readonly source: 'file' | 'store';
}

/** As much of a task as policies look at. */
export interface Petition {
  readonly type: string;
  readonly resources: readonly NamedResource[];
  readonly risk: number;
  readonly authorRoles: readonly string[];
}

/** Every policy that is about a task. The order of the policies does not matter: all of them must be content. */
export function matching<P extends ReviewerPolicy>(policies: readonly P[], petition: Petition): P[] {
  return policies.filter((policy) => policy.enabled && isAbout(policy, petition));
}

function isAbout(policy: ReviewerPolicy, { type, resources, risk }: Petition): boolean {
  const { task_types, resource_patterns, risk_threshold } = policy;
  return (
    risk >= risk_threshold &&
    (task_types.length === 0 || task_types.some((pattern) => matches(pattern, type))) &&
    (resource_patterns.length === 0 || resources.some((one) => matchesAnyResource(resource_patterns, one)))
  );
}

/** Whether this policy is content without a person: everything it names must hold, and it must name something. */
export function allowsUnasked({ auto_approve_if }: ReviewerPolicy, petition: Petition): boolean {
  if (!auto_approve_if) return false;
  const { risk_below, author_has_role, resources_in_scope } = auto_approve_if;
  const { risk, authorRoles, resources } = petition;
  const conditions = [
    risk_below === undefined ? undefined : risk < risk_below,
    author_has_role === undefined ? undefined : author_has_role.some((role) => authorRoles.includes(role)),
    resources_in_scope === undefined
      ? undefined
      : resources.length > 0 && resources.every((one) => matchesAnyResource(resources_in_scope, one)),
  ].filter((condition) => condition !== undefined);
  return conditions.length > 0 && conditions.every(Boolean);
}
