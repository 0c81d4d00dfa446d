import { DEFAULT_PROJECT, decodeId, encodeId, type ResourceId, type ResourceType } from '../../redis/ids.ts';
import { above, marked, plainPath } from './paths.ts';
import type { TaskResource } from './task.ts';

/** Resources of this type are paths, of which a folder covers its contents. Others collide by name alone. */
export const FILE = 'file';

/** One lock that a task takes with its claim, and where to look for what would collide with it. */
export interface ResourceClaim {
  readonly type: ResourceType;
  /** The id of the lock: `ade:lock:resource:TYPE:ID`. */
  readonly id: ResourceId;
  readonly mode: TaskResource['mode'];
  /** Where it stands in the sorted sets of what is held. */
  readonly mark: string;
  /** Marks of the folders above: held by another task, one of them covers this. None for what is no path. */
  readonly above: readonly string[];
}

/**
 * The locks of a task: one for each thing it declares, never one for a folder above it. What a thing collides with is
 * found instead in two sorted sets of the marks of all that is held (exclusive, shared), each member MARK NUL TASK:
 *
 *   beneath or the same   ZRANGEBYLEX set [MARK (MARK\255   the byte, which no text in UTF-8 has
 *   a folder above        ZRANGEBYLEX set [ABOVE\0 (ABOVE\1   for each of `above`
 *
 * An exclusive claim asks both sets, a shared one only the exclusive set; members of its own task do not count. That is
 * exact, costs O(depth · log held), and writes one member. Locks on each folder above would be rewritten by every claim
 * in the tree, and shared and exclusive alone cannot say that readers of a folder exclude writers beneath it, yet not
 * one another.
 */
export function resourceClaims(
  resources: readonly TaskResource[],
  { foldCase = true, project = DEFAULT_PROJECT }: ClaimTerms = {},
): ResourceClaim[] {
  const claims = new Map<string, ResourceClaim>();
  for (const resource of resources) {
    const claim = { ...claimOf(resource, foldCase), id: lockIdIn(project, resource) };
    // The same thing declared twice is taken once, exclusively if either says so.
    if (claims.get(claim.mark)?.mode !== 'exclusive') claims.set(claim.mark, claim);
  }
  return withoutCovered([...claims.values()]);
}

interface ClaimTerms {
  readonly foldCase?: boolean;
  readonly project?: string;
}

/** The id of the lock on a thing, or INVALID_ID: some names cannot be a lock's. */
export const lockId = ({ type, id }: TaskResource): ResourceId =>
  encodeId('resource', type === FILE ? plainPath(id) || '.' : id);

/**
 * The same in a project. Paths are those of its own working copy: outside the default project they say whose, for locks are
 * everybody's. A database is the same one for all.
 */
export function lockIdIn(project: string, resource: TaskResource): ResourceId {
  const id = lockId(resource);
  const isOwn = resource.type !== FILE || project === DEFAULT_PROJECT;
  return isOwn ? id : encodeId('resource', `${project}:${decodeId(id)}`);
}

/** Whether two tasks must not run at once. The scripts' sorted sets answer the same, for all that is held at once. */
export function collide(one: readonly ResourceClaim[], other: readonly ResourceClaim[]): boolean {
  return one.some((a) => other.some((b) => !areShared(a, b) && touch(a, b)));
}

const areShared = (a: ResourceClaim, b: ResourceClaim) => a.mode === 'shared' && b.mode === 'shared';
const touch = (a: ResourceClaim, b: ResourceClaim) => a.mark.startsWith(b.mark) || b.mark.startsWith(a.mark);

function claimOf(resource: TaskResource, foldCase: boolean): ResourceClaim {
  const { type, id, mode } = resource;
  const lock = lockId(resource);
  if (type !== FILE) {
    // No encoded name has a slash in it, so none of these marks begins another.
    return { type, id: lock, mode, mark: `${type}:${lock}/`, above: [] };
  }
  const path = plainPath(id);
  // File systems disagree on case; two files that differ by nothing else are rarer than two spellings of one.
  const compared = foldCase ? path.toLowerCase() : path;
  return { type, id: lock, mode, mark: marked(compared), above: above(compared).map(marked) };
}

/** A folder makes what lies beneath it superfluous, unless it is only read and the thing beneath is changed. */
function withoutCovered(claims: readonly ResourceClaim[]): ResourceClaim[] {
  const byMark = new Map(claims.map((claim) => [claim.mark, claim]));
  const isCovered = ({ above, mode }: ResourceClaim) =>
    above.some((mark) => {
      const folder = byMark.get(mark);
      return folder && (folder.mode === 'exclusive' || mode === 'shared');
    });
  return claims.filter((claim) => !isCovered(claim));
}
