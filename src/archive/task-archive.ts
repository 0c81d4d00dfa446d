import { ReeveError } from '../errors.ts';
import type { Store } from '../store/database.ts';
import type { ArchivedTaskRow, NewArchivedTaskRow } from '../store/schema.ts';
import { type ArchivedDocument, type ArchivedTask, documentSchema, type EndedState } from './archived-task.ts';

export interface TaskArchiveOptions {
  readonly store: Store;
  readonly project: string;
}

export interface ArchivePage {
  readonly items: readonly ArchivedTask[];
  /** Where the next page begins; undefined: this is the last. */
  readonly next?: string | undefined;
}

/** What tells one life of a task from another, and one end of it from the next. */
export type Mark = Pick<ArchivedTaskRow, 'id' | 'created_at' | 'state' | 'ended_at' | 'author'>;

/** The tasks that ended, as the durable store has them. Each project has its own. */
export class TaskArchive {
  readonly #options: TaskArchiveOptions;

  constructor(options: TaskArchiveOptions) {
    this.#options = options;
  }

  /** Writes them, again if need be: the same task is the same row. */
  async save(rows: readonly NewArchivedTaskRow[]): Promise<void> {
    if (rows.length === 0) return;
    await this.#options.store.db
      .insertInto('archived_tasks')
      .values([...rows])
      .onConflict((taken) =>
        taken.columns(['id', 'created_at']).doUpdateSet((row) => ({
          state: row.ref('excluded.state'),
          title: row.ref('excluded.title'),
          author: row.ref('excluded.author'),
          ended_at: row.ref('excluded.ended_at'),
          archived_at: row.ref('excluded.archived_at'),
          document: row.ref('excluded.document'),
        })),
      )
      .execute();
  }

  /** Which of these are here; `ids` are those of ADE. An older life of the same id comes first. */
  async marks(ids: readonly string[]): Promise<Mark[]> {
    if (ids.length === 0) return [];
    return this.#options.store.db
      .selectFrom('archived_tasks')
      .select(['id', 'created_at', 'state', 'ended_at', 'author'])
      .where('id', 'in', ids)
      .orderBy('created_at')
      .execute();
  }

  /** What was archived last comes first. */
  async list({ limit, cursor, state }: Wanted): Promise<ArchivePage> {
    const { store, project } = this.#options;
    let query = store.db
      .selectFrom('archived_tasks')
      .select(['position', 'task_id', 'state', 'title', 'author', 'created_at', 'ended_at', 'archived_at'])
      .where('project', '=', project);
    if (state) query = query.where('state', '=', state);
    if (cursor !== undefined) query = query.where('position', '<', Number(cursor));
    // One more than is shown says whether there is more.
    const rows = await query
      .orderBy('position', 'desc')
      .limit(limit + 1)
      .execute();
    const items = rows.slice(0, limit);
    const last = rows.length > limit ? items.at(-1) : undefined;
    return {
      items: items.map(({ position: _position, ...item }) => item),
      ...(last && { next: String(last.position) }),
    };
  }

  /** One task, in its last life. */
  async get(task: string): Promise<ArchivedTask & { readonly document: ArchivedDocument }> {
    const { store, project } = this.#options;
    const row = await store.db
      .selectFrom('archived_tasks')
      .select(['task_id', 'state', 'title', 'author', 'created_at', 'ended_at', 'archived_at', 'document'])
      .where('project', '=', project)
      .where('task_id', '=', task)
      .orderBy('created_at', 'desc')
      .limit(1)
      .executeTakeFirst();
    if (!row) throw new ReeveError('ARCHIVED_TASK_UNKNOWN', { task });
    return { ...row, document: documentSchema.parse(JSON.parse(row.document)) };
  }
}

interface Wanted {
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly state?: EndedState | undefined;
}
