import type { RedisClient } from '../../redis/connection.ts';

export interface CopiesWanted {
  /** How many replicas must have a grant. */
  readonly replicas: number;
  readonly withinMs: number;
}

/**
 * How many replicas have what was written at this key on this client. Redis holds all that comes after it on the same
 * connection up meanwhile, so the client should be lent for it. In a cluster the question must go to the node of the key,
 * which a pipeline does that also names the key. No answer counts as no copy.
 */
export async function copiesOf(client: RedisClient, key: string, { replicas, withinMs }: CopiesWanted) {
  const answers = await client
    .pipeline()
    .exists(key)
    .wait(replicas, withinMs)
    .exec()
    .catch(() => null);
  const [failure, copies] = answers?.[1] ?? [];
  return failure === null ? Number(copies) : 0;
}
