import { type Clock, isoTime } from '../clock.ts';
import { page } from '../coordinator/tasks/scripts.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import type { NewArchivedTaskRow } from '../store/schema.ts';
import { ENDED_STATES, type EndedState } from './archived-task.ts';
import { readDocument } from './document.ts';
import { unlist } from './scripts.ts';
import type { Mark, TaskArchive } from './task-archive.ts';

export interface ArchivistOptions {
  readonly tasks: TaskStore;
  readonly archive: TaskArchive;
  readonly clock: Clock;
  /** How long after its end a task is archived. */
  readonly afterDays: () => number;
}

export interface ArchiveCounts {
  /** Copied to the store. */
  readonly archived: number;
  /** Taken out of the indexes, since Redis has forgotten them. */
  readonly unlisted: number;
  /** Those of them that Redis forgot before anybody archived them. */
  readonly lost: number;
}

const DAY_SECONDS = 86_400;
/** What Redis will forget within this time is archived however lately it ended. */
const SOON_SECONDS = 2 * DAY_SECONDS;
const BATCH = 200;
/** Batches of one turn. */
const MOST = 20;

interface Place {
  readonly state: number;
  readonly score: string;
  readonly member: string;
}
const START: Place = { state: 0, score: '', member: '' };

/** A task that ended, as it is seen on the way. */
interface Ended extends Mark {
  readonly task: string;
  readonly isDue: boolean;
}

/**
 * Copies tasks that ended to the store, before Redis forgets them. Nothing is removed from Redis that it still has: it forgets by
 * itself, and then the indexes are told. So a crash at any point leaves something to be done again, and nothing to be repaired.
 */
export class Archivist {
  readonly #options: ArchivistOptions;
  #place = START;

  constructor(options: ArchivistOptions) {
    this.#options = options;
  }

  /** Whether the last turn had to stop on its way, and goes on there. */
  get isMidway(): boolean {
    return this.#place !== START;
  }

  /** One turn along the tasks that ended, oldest first. It is bounded; the next one goes on where it stopped. */
  async archiveOnce(signal?: AbortSignal, most = MOST): Promise<ArchiveCounts> {
    await this.#options.tasks.current();
    let total: ArchiveCounts = { archived: 0, unlisted: 0, lost: 0 };
    for (let at = 0; at < most && !signal?.aborted; at++) {
      const { counts, next } = await this.#step(this.#place);
      total = sum(total, counts);
      this.#place = next;
      if (next === START) break;
    }
    return total;
  }

  /** All that ended so long ago, in one go: for whoever does not want to wait for the turns. */
  async archiveNow(afterDays = this.#options.afterDays(), signal?: AbortSignal): Promise<ArchiveCounts> {
    const walk = new Archivist({ ...this.#options, afterDays: () => afterDays });
    let total = await walk.archiveOnce(signal);
    while (walk.isMidway && !signal?.aborted) total = sum(total, await walk.archiveOnce(signal));
    return total;
  }

  async #step(place: Place): Promise<{ readonly counts: ArchiveCounts; readonly next: Place }> {
    const state = ENDED_STATES[place.state]!;
    const { members, last } = await this.#read(state, place);
    const counts = await this.#handle(state, await this.#own(members));
    if (last) return { counts, next: { ...place, ...last } };
    return { counts, next: place.state + 1 < ENDED_STATES.length ? { ...START, state: place.state + 1 } : START };
  }

  /** The next tasks of a state that are old enough to have ended long ago; and the last of them, if there may be more. */
  async #read(state: EndedState, { score, member }: Place) {
    const { tasks, clock, afterDays } = this.#options;
    const index = tasks.keys.tasksByState(state);
    const flat = await tasks.scripts.run(page, { index }, { score, member, count: BATCH });
    const entries = flat.flatMap((name, at) => (at % 2 === 0 ? [{ member: name, score: flat[at + 1]! }] : []));
    const newest = clock.now() / 1000 - afterDays() * DAY_SECONDS;
    const old = entries.filter((entry) => Number(entry.score) <= newest);
    return { members: old.map((entry) => entry.member), last: old.length === BATCH ? old.at(-1) : undefined };
  }

  /** The indexes are those of all projects. */
  async #own(members: readonly string[]): Promise<string[]> {
    const { tasks } = this.#options;
    const ids = members.filter((one) => one.startsWith(tasks.head)).map((one) => one.slice(tasks.head.length));
    const known = await tasks.known(ids);
    return ids.filter((id) => known.has(id));
  }

  async #handle(state: EndedState, ids: readonly string[]): Promise<ArchiveCounts> {
    const { tasks, archive } = this.#options;
    const marks = new Map((await archive.marks(ids.map((id) => tasks.adeId(id)))).map((mark) => [mark.id, mark]));
    const markOf = (task: string) => marks.get(tasks.adeId(task));
    const seen = await Promise.all(ids.map(async (task) => ({ task, ended: await this.#look(task, state) })));
    const due = seen.flatMap(({ task, ended }) =>
      ended && ended !== 'gone' && ended.isDue && !isSame(ended, markOf(task)) ? [ended] : [],
    );
    const archived = await this.#save(due);
    const gone = seen.filter(({ ended }) => ended === 'gone').map(({ task }) => task);
    const named = gone.map((task) => [task, markOf(task)?.author ?? '']);
    const args = { head: tasks.head, state, tasks: named };
    const unlisted = gone.length > 0 ? await tasks.scripts.run(unlist, {}, args) : 0;
    return { archived, unlisted, lost: gone.filter((task) => !markOf(task)).length };
  }

  /** How a task ended; undefined if it has not, whatever the index said. */
  async #look(task: string, listed: EndedState): Promise<Ended | 'gone' | undefined> {
    const { tasks, clock, afterDays } = this.#options;
    const { connection, keys } = tasks;
    const [redis, id] = [connection.commands, tasks.adeId(task)];
    const [state, left, times, ended] = await Promise.all([
      redis.get(keys.taskState(id)),
      redis.ttl(keys.taskState(id)),
      redis.hmget(keys.taskMetadata(id), 'created_at', 'updated_at', 'author_id'),
      redis.hget(keys.taskExecution(id), 'completed_at'),
    ]);
    if (state === null) return 'gone';
    if (state !== listed) return undefined;
    const [created_at, updated_at, author] = times;
    const ended_at = ended ?? updated_at ?? isoTime(clock);
    const isLongAgo = Date.parse(ended_at) <= clock.now() - afterDays() * DAY_SECONDS * 1000;
    const isDue = isLongAgo || (left >= 0 && left < SOON_SECONDS);
    return { task, id, state: listed, created_at: created_at ?? ended_at, ended_at, author: author ?? '', isDue };
  }

  async #save(ended: readonly Ended[]): Promise<number> {
    const { tasks, archive, clock } = this.#options;
    const rows = await Promise.all(
      ended.map(async ({ task, isDue: _isDue, ...mark }): Promise<NewArchivedTaskRow[]> => {
        const document = await readDocument(tasks, task);
        if (!document) return [];
        const { title } = document.data;
        const common = { project: tasks.project, task_id: task, title, archived_at: isoTime(clock) };
        return [{ ...mark, ...common, document: JSON.stringify(document) }];
      }),
    );
    await archive.save(rows.flat());
    return rows.flat().length;
  }
}

const isSame = (one: Mark, other: Mark | undefined): boolean =>
  one.created_at === other?.created_at && one.state === other.state && one.ended_at === other.ended_at;

const sum = (one: ArchiveCounts, other: ArchiveCounts): ArchiveCounts => ({
  archived: one.archived + other.archived,
  unlisted: one.unlisted + other.unlisted,
  lost: one.lost + other.lost,
});
