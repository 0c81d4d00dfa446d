import type { Store } from '../../src/store/database.ts';
import type { NewEventRow } from '../../src/store/schema.ts';

export const anEvent = (fields: Partial<NewEventRow> = {}): NewEventRow => ({
  stream: 'events',
  id: '1763460000000-0',
  event: 'task.queued',
  at: '2025-11-18T10:00:00.000Z',
  source: 'coordinator',
  task_id: 'task-1',
  agent_id: null,
  payload: '{}',
  ...fields,
});

/** Archives as the archiver does: the rows and how far they reach, in one transaction. */
export async function archive(store: Store, rows: readonly NewEventRow[]): Promise<void> {
  const { stream, id } = rows.at(-1)!;
  await store.db.transaction().execute(async (tx) => {
    await tx.insertInto('events').values(rows).execute();
    await tx
      .insertInto('event_cursors')
      .values({ stream, id })
      .onConflict((taken) => taken.column('stream').doUpdateSet({ id }))
      .execute();
  });
}

export const cursorOf = (store: Store, stream = 'events') =>
  store.db.selectFrom('event_cursors').select('id').where('stream', '=', stream).executeTakeFirst();
