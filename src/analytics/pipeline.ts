import type { Kysely } from 'kysely';
import type { Clock } from '../clock.ts';
import type { ReeveEvent } from '../events/catalogue.ts';
import type { Store } from '../store/database.ts';
import type { Tables } from '../store/schema.ts';
import { type ApprovalMark, approvalMarks, type TaskMark, taskMarks } from './marks.ts';

export interface PipelineOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** The lifecycle's id of a task of the queue. */
  readonly lifecycleId: (task: string) => string;
  /** Where tasks stand by now: one that was finished before it was taken in has no event of its own for that. */
  readonly statesOf: (tasks: readonly string[]) => Promise<readonly (string | null)[]>;
}

/** The analytics-pipeline: counts events and notes when tasks and requests reached what. Each event counts once. */
export class Pipeline {
  readonly #options: PipelineOptions;
  #pruneAt = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  async count(events: readonly ReeveEvent[]): Promise<void> {
    const { store } = this.#options;
    // Asked before the transaction, which must not wait for another medium.
    const marks = await this.#taskMarks(events);
    await store.db.transaction().execute(async (tx) => {
      const fresh = await onlyNew(tx, events);
      const isFresh = new Set(fresh.map(keyOf));
      await countDays(tx, fresh);
      await markTasks(
        tx,
        marks.filter(({ of }) => isFresh.has(of)),
      );
      await markApprovals(tx, fresh.flatMap(approvalMarks));
    });
    await this.#prune();
  }

  async #taskMarks(events: readonly ReeveEvent[]): Promise<(TaskMark & { readonly of: string })[]> {
    const { lifecycleId, statesOf } = this.#options;
    const marks = events.flatMap((event) =>
      taskMarks(event, lifecycleId).map((mark) => ({ ...mark, of: keyOf(event) })),
    );
    const made = marks.filter(({ what }) => what === 'created');
    const states = made.length === 0 ? [] : await statesOf(made.map(({ task }) => task));
    const done = made.filter((_, at) => states[at] === 'COMPLETED');
    return [...marks, ...done.map((mark) => ({ ...mark, what: 'completed' as const }))];
  }

  /** Streams keep a week at most, so that nothing older can come again. */
  async #prune(): Promise<void> {
    const { store, clock } = this.#options;
    if (clock.now() < this.#pruneAt) return;
    this.#pruneAt = clock.now() + HOUR_MS;
    await store.db
      .deleteFrom('stat_seen')
      .where('id', '<', `${clock.now() - KEEP_MS}-0`)
      .execute();
  }
}
const HOUR_MS = 3_600_000;
const KEEP_MS = 30 * 24 * HOUR_MS;

const keyOf = ({ stream, id }: Pick<ReeveEvent, 'stream' | 'id'>): string => `${stream}/${id}`;

async function onlyNew(tx: Kysely<Tables>, events: readonly ReeveEvent[]): Promise<readonly ReeveEvent[]> {
  const added = await tx
    .insertInto('stat_seen')
    .values(events.map(({ stream, id }) => ({ stream, id })))
    .onConflict((conflict) => conflict.columns(['stream', 'id']).doNothing())
    .returning(['stream', 'id'])
    .execute();
  const fresh = new Set(added.map(({ stream, id }) => `${stream}/${id}`));
  return events.filter((event) => fresh.has(keyOf(event)));
}

/** In one order, so that two daemons that count the same days do not wait for each other in a circle. */
async function countDays(tx: Kysely<Tables>, events: readonly ReeveEvent[]): Promise<void> {
  const counts = Map.groupBy(events, ({ at, event }) => `${at.slice(0, 10)} ${event}`);
  for (const [key, those] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const [day, event] = key.split(' ') as [string, string];
    const count = those.length;
    await tx
      .insertInto('stat_days')
      .values({ day, event, count })
      .onConflict((conflict) =>
        conflict.columns(['day', 'event']).doUpdateSet(({ eb }) => ({ count: eb('stat_days.count', '+', count) })),
      )
      .execute();
  }
}

/** What was reached is noted once; where it stands follows the newest word, whichever order they come in. */
async function markTasks(tx: Kysely<Tables>, marks: readonly TaskMark[]): Promise<void> {
  const byTask = [...Map.groupBy(marks, ({ task }) => task)].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const [task, those] of byTask) {
    const first = those[0]!.at;
    await tx
      .insertInto('stat_tasks')
      .values({ task_id: task, created_at: first, changed_at: first })
      .onConflict((conflict) => conflict.column('task_id').doNothing())
      .execute();
    for (const mark of those) await markTask(tx, mark);
  }
}

async function markTask(tx: Kysely<Tables>, { task, what, at }: TaskMark): Promise<void> {
  const of = () => tx.updateTable('stat_tasks').where('task_id', '=', task);
  if (what === 'created') {
    await of().set({ created_at: at }).where('created_at', '>', at).execute();
    return;
  }
  const column = FIRST[what];
  if (column) {
    await of()
      .set({ [column]: at })
      .where((eb) => eb.or([eb(column, 'is', null), eb(column, '>', at)]))
      .execute();
  }
  const isEnd = what === 'completed' || what === 'cancelled' || what === 'rejected';
  await of()
    .set({ changed_at: at, ended_at: isEnd ? at : null, outcome: isEnd ? what : null })
    .where('changed_at', '<=', at)
    .execute();
}
const FIRST: Partial<Record<TaskMark['what'], 'submitted_at' | 'approved_at' | 'started_at'>> = {
  submitted: 'submitted_at',
  approved: 'approved_at',
  started: 'started_at',
};

async function markApprovals(tx: Kysely<Tables>, marks: readonly ApprovalMark[]): Promise<void> {
  for (const { approval, task, reviewer, at, answer } of marks) {
    const set = answer === undefined ? { asked_at: at } : { answered_at: at, answer };
    await tx
      .insertInto('stat_approvals')
      .values({ approval_id: approval, task_id: task, reviewer, ...set })
      .onConflict((conflict) => conflict.column('approval_id').doUpdateSet(set))
      .execute();
  }
}
