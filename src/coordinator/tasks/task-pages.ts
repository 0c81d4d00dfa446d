import { type FoundBy, indexesOf } from './found.ts';
import { page } from './scripts.ts';
import type { Station } from './station.ts';
import type { TaskState, WorkStatus } from './task.ts';
import type { TaskStore } from './task-store.ts';
import type { TaskRow, TaskViews } from './task-view.ts';

export interface WantedTasks extends FoundBy {
  readonly station?: Station | undefined;
  readonly status?: WorkStatus | undefined;
  /** Who works on it now. */
  readonly agent?: string | undefined;
  /** The type of agent it is for. */
  readonly type?: string | undefined;
  readonly epic?: string | undefined;
  /** A part of its id or its title. */
  readonly text?: string | undefined;
}

export interface TaskPage {
  readonly items: readonly TaskRow[];
  /** Where the next page begins; undefined: this is the last. */
  readonly next?: string | undefined;
  /** How many there are in all, where that is known without looking. */
  readonly total?: number | undefined;
}

/** `INDEX:SCORE:TASK`, all of the last row of a page. */
export const CURSOR = /^(\d{1,2}):([^:]{1,40}):([^:]{1,300})$/;
/** Candidates looked at together where most may not be wanted. */
const BATCH = 200;

/**
 * Lists tasks from the narrowest index that has all of them: by who made them, what they work on, who works on them,
 * where they stand; else in the order of their source. What no index knows is compared on the way, a batch at a time,
 * until the page is full: a page costs what it shows and what it has to pass over.
 */
export class TaskPages {
  readonly #store: TaskStore;
  readonly #views: TaskViews;

  constructor(store: TaskStore, views: TaskViews) {
    this.#store = store;
    this.#views = views;
  }

  async page(wanted: WantedTasks, { limit, cursor }: PageOptions): Promise<TaskPage> {
    await this.#store.current();
    const hasFilter = Object.values(wanted).some((value) => value !== undefined);
    const sources = sourcesOf(wanted, this.#store);
    const isWanted = wants(wanted);
    const items: TaskRow[] = [];
    let place = placeOf(cursor);
    while (place.index < sources.length) {
      // One more than is shown says whether there is more.
      const count = hasFilter ? BATCH : limit + 1 - items.length;
      const found = await this.#read(sources[place.index]!, place, count);
      for (const { row, at } of await this.#rows(sources[place.index]!, found)) {
        if (!isWanted(row)) continue;
        if (items.length === limit) return { items, next: textOf(place), ...(await this.#total(hasFilter)) };
        items.push(row);
        place = { ...place, ...at };
      }
      const last = found.length === count ? found.at(-1) : undefined;
      place = last ? { ...place, ...last } : { index: place.index + 1, score: '', member: '' };
    }
    return { items, ...(await this.#total(hasFilter)) };
  }

  async #total(hasFilter: boolean) {
    return hasFilter ? {} : { total: await this.#store.size() };
  }

  async #read({ key }: Source, { score, member }: Entry, count: number): Promise<Entry[]> {
    const flat = await this.#store.scripts.run(page, { index: key }, { score, member, count });
    return flat.flatMap((name, at) => (at % 2 === 0 ? [{ member: name, score: flat[at + 1]! }] : []));
  }

  async #rows({ head, also }: Source, entries: readonly Entry[]) {
    const { connection } = this.#store;
    const own = entries.filter(({ member }) => member.startsWith(head));
    if (own.length === 0) return [];
    const ids = own.map(({ member }) => member.slice(head.length));
    const names = own.map(({ member }) => member);
    const known = await this.#store.known(ids);
    const lists = await Promise.all(also.map((key) => connection.commands.zmscore(key, ...names)));
    const isIn = (at: number) => lists.every((scores) => scores[at] !== null);
    const rows = await this.#views.rows(ids.filter((id, at) => known.has(id) && isIn(at)));
    const rowOf = new Map(rows.map((row) => [row.task_id, row]));
    return own.flatMap((at, index) => {
      const row = rowOf.get(ids[index]!);
      return row ? [{ row, at }] : [];
    });
  }
}

interface PageOptions {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** One of the sorted sets that are read, one after the other. */
interface Source {
  readonly key: string;
  /** What stands before a task's id there: the indexes of the lifecycle are those of all projects. */
  readonly head: string;
  /** Others of the same kind that it must be in, too. */
  readonly also: readonly string[];
}

interface Entry {
  readonly member: string;
  readonly score: string;
}

interface Place extends Entry {
  readonly index: number;
}

const placeOf = (cursor: string | undefined): Place => {
  const [, index = '0', score = '', member = ''] = CURSOR.exec(cursor ?? '') ?? [];
  return { index: Number(index), score, member };
};
const textOf = ({ index, score, member }: Place): string => `${index}:${score}:${member}`;

function sourcesOf(wanted: WantedTasks, store: TaskStore): Source[] {
  const { keys, head } = store;
  const [first, ...also] = indexesOf(store, wanted);
  if (first !== undefined) return [{ key: first, head, also }];
  const own = (key: string): Source => ({ key, head: '', also: [] });
  const { agent, station, status } = wanted;
  if (agent !== undefined || station === 'working' || status === 'assigned' || status === 'in_progress')
    return [own(keys.runningTasks())];
  if (station === 'ready' || status === 'pending') return [own(keys.readyOrder()), own(keys.parkedOrder())];
  const states = (station && STATES_OF_STATION[station]) ?? (status && STATES_OF_STATUS[status]);
  return states ? states.map((state) => ({ key: keys.tasksByState(state), head, also: [] })) : [own(keys.knownTasks())];
}

const STATES_OF_STATION: Partial<Record<Station, readonly TaskState[]>> = {
  review: ['DRAFT', 'SUBMITTED', 'REVIEWING'],
  waiting: ['APPROVED'],
  done: ['COMPLETED'],
  failed: ['CANCELLED'],
  cancelled: ['CANCELLED'],
  rejected: ['REJECTED'],
};
const STATES_OF_STATUS: Partial<Record<WorkStatus, readonly TaskState[]>> = {
  blocked: ['DRAFT', 'SUBMITTED', 'REVIEWING', 'APPROVED'],
  completed: ['COMPLETED'],
  failed: ['CANCELLED', 'REJECTED'],
};

function wants({ station, status, agent, type, epic, text }: WantedTasks): (row: TaskRow) => boolean {
  const is = (wanted: string | undefined, found: string | undefined) => wanted === undefined || wanted === found;
  const words = text?.toLowerCase() ?? '';
  const has = (found: string) => found.toLowerCase().includes(words);
  const isOf = type?.toLowerCase();
  return (row) =>
    is(station, row.station) &&
    is(status, row.status) &&
    is(agent, row.agent_id) &&
    is(isOf, row.agent_type.toLowerCase()) &&
    is(epic, row.epic) &&
    (has(row.task_id) || has(row.title));
}
