import type { CriticalityRow } from '../reviewer-policy.ts';
import { matchesResource, type NamedResource } from './patterns.ts';
import type { Finding } from './risk.ts';

/** In force when the configuration has no table of its own. Files are left to the policies: a path says little by itself. */
export const USUAL_CRITICALITY: readonly CriticalityRow[] = [
  { pattern: 'secret:*', criticality: 90, used_by: [] },
  { pattern: '{database,service,cluster,network,infrastructure}:*prod*', criticality: 95, used_by: [] },
  { pattern: '{cluster,network,infrastructure}:*', criticality: 70, used_by: [] },
  { pattern: 'database:*', criticality: 60, used_by: [] },
  { pattern: 'service:*', criticality: 50, used_by: [] },
];

/** What no row is about. */
const UNNAMED = 5;

/** The most critical thing that it touches decides. */
export function criticalityOf(resources: readonly NamedResource[], table: readonly CriticalityRow[]): Finding {
  let most: Finding = { value: UNNAMED, because: 'it touches nothing that the table of critical resources names' };
  for (const resource of resources) {
    const row = rowOf(resource, table);
    if (row && row.criticality > most.value) {
      most = { value: row.criticality, because: `${resource.type}:${resource.id} is ${row.pattern} in the table` };
    }
  }
  return most;
}

/** Everything that is said to break with one of these. */
export function usersOf(resources: readonly NamedResource[], table: readonly CriticalityRow[]): string[] {
  return [...new Set(resources.flatMap((resource) => rowOf(resource, table)?.used_by ?? []))];
}

const rowOf = (resource: NamedResource, table: readonly CriticalityRow[]): CriticalityRow | undefined =>
  table.find(({ pattern }) => matchesResource(pattern, resource));
