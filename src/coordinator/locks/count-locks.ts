import type { LockRef } from './lock.ts';
import type { Locks } from './locks.ts';

const PAGE = 1_000;

/** How many locks there are of each kind, page by page: Redis serves others in between. What just expired still counts. */
export async function countLocks({ scripts }: Locks): Promise<Record<LockRef['kind'], number>> {
  const counts = { task: 0, resource: 0, agent: 0 };
  const registry = scripts.keys.lockRegistry();
  let cursor = '0';
  do {
    const [next, flat] = await scripts.connection.commands.zscan(registry, cursor, 'COUNT', PAGE);
    for (let at = 0; at < flat.length; at += 2) {
      const lock = scripts.lockOf(flat[at] as string);
      if (lock) counts[lock.kind] += 1;
    }
    cursor = next;
  } while (cursor !== '0');
  return counts;
}
