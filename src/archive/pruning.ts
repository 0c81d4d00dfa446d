import { recordChange } from '../audit/intake.ts';
import type { Clock } from '../clock.ts';
import type { Store } from '../store/database.ts';

export interface PruningOptions {
  readonly store: Store;
  readonly project: string;
  readonly clock: Clock;
  /** Which daemon this is: goes into audit rows. */
  readonly service: string;
  /** Undefined: for ever. */
  readonly keepDays: () => number | undefined;
}

const DAY_MS = 86_400_000;
/** As many at once as hold nobody else up for long. */
const BATCH = 500;

/**
 * Deletes from the archive what was put there so long ago. Each batch leaves an audit row, in the transaction of the deletion, that
 * names what went: the audit log itself forgets nothing, for a chain without its beginning proves nothing.
 */
export async function pruneOnce(options: PruningOptions, signal?: AbortSignal): Promise<number> {
  const { clock, keepDays } = options;
  const days = keepDays();
  if (days === undefined) return 0;
  const before = new Date(clock.now() - days * DAY_MS).toISOString();
  let pruned = 0;
  for (let batch = BATCH; batch === BATCH && !signal?.aborted; pruned += batch) {
    batch = await pruneBatch(options, before);
  }
  return pruned;
}

function pruneBatch({ store, project, clock, service }: PruningOptions, before: string): Promise<number> {
  return store.db.transaction().execute(async (tx) => {
    const old = await tx
      .selectFrom('archived_tasks')
      .select(['position', 'id'])
      .where('project', '=', project)
      .where('archived_at', '<', before)
      .orderBy('position')
      .limit(BATCH)
      .execute();
    if (old.length === 0) return 0;
    const positions = old.map(({ position }) => position);
    await tx.deleteFrom('archived_tasks').where('position', 'in', positions).execute();
    await recordChange(tx, clock, service, {
      action: 'archive.prune',
      subject: `archive:${project}`,
      reason: `archived before ${before}`,
      detail: { tasks: old.map(({ id }) => id) },
    });
    return old.length;
  });
}
