import { unlessWrongType } from '../../redis/wrong-type.ts';
import { page } from './scripts.ts';
import type { WorkStatus } from './task.ts';
import { GRAPH_FIELDS, knownTask } from './task-graph.ts';
import type { TaskStore } from './task-store.ts';

export interface TaskNode {
  readonly task_id: string;
  readonly status: WorkStatus;
  readonly depends_on: readonly string[];
}

export interface NodePage {
  readonly items: readonly TaskNode[];
  /** Where the next page begins; undefined: this is the last. */
  readonly next?: string | undefined;
}

export interface Neighbourhood {
  /** The one in the middle first, then those a step away, and so on. */
  readonly items: readonly TaskNode[];
  /** There is more within these steps than was asked for. */
  readonly isCut: boolean;
}

/** `NUMBER:TASK` of the last one of a page. */
export const NODE_CURSOR = /^([^:]{1,40}):([^:]{1,300})$/;

/** What waits for what: all of it in pages, or what is near one task. Either costs what it shows. */
export class TaskEdges {
  readonly #store: TaskStore;

  constructor(store: TaskStore) {
    this.#store = store;
  }

  /** In the order of their source. */
  async page({
    limit,
    cursor = '',
  }: {
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<NodePage> {
    const { scripts, keys } = this.#store;
    const [, score = '', member = ''] = NODE_CURSOR.exec(cursor) ?? [];
    // One more than is shown says whether there is more.
    const flat = await scripts.run(page, { index: keys.knownTasks() }, { score, member, count: limit + 1 });
    const found = flat.filter((_, at) => at % 2 === 0);
    const items = await this.#nodes(found.slice(0, limit));
    if (found.length <= limit) return { items };
    return { items, next: `${flat[limit * 2 - 1]}:${flat[limit * 2 - 2]}` };
  }

  /** Within so many steps of a task, in both directions. Undefined: there is no such task. */
  async around(
    task: string,
    { hops, limit }: { readonly hops: number; readonly limit: number },
  ): Promise<Neighbourhood | undefined> {
    const seen = new Set([task]);
    let rim = [task];
    for (let hop = 0; hop < hops && rim.length > 0 && seen.size <= limit; hop++) {
      const next = (await Promise.all(rim.map((id) => this.#neighbours(id, limit)))).flat();
      rim = [...new Set(next)].filter((id) => !seen.has(id)).slice(0, limit + 1 - seen.size);
      for (const id of rim) seen.add(id);
    }
    const items = await this.#nodes([...seen].slice(0, limit));
    return items[0]?.task_id === task ? { items, isCut: seen.size > limit } : undefined;
  }

  async #neighbours(id: string, most: number): Promise<readonly string[]> {
    const { connection, keys } = this.#store;
    const some = async (set: string) => (await connection.commands.sscan(set, '0', 'COUNT', most + 1))[1];
    const both = [unlessWrongType(some(keys.taskDependencies(id)), []), some(keys.dependents(id))];
    return (await Promise.all(both)).flatMap((ids) => ids.sort());
  }

  async #nodes(ids: readonly string[]): Promise<TaskNode[]> {
    const { connection, keys } = this.#store;
    const rows = await this.#store.records(ids, GRAPH_FIELDS);
    const nodes = ids.map(async (id, at): Promise<TaskNode | undefined> => {
      const task = knownTask(id, rows[at]!);
      if (!task) return undefined;
      const known = await unlessWrongType(connection.commands.smembers(keys.taskDependencies(id)), []);
      // Of what keeps a task in quarantine nothing may be known but its name.
      const named = task.quarantine ? task.depends_on : [];
      const depends_on = [...new Set([...known, ...named])].sort();
      return { task_id: id, status: rows[at]![0] as WorkStatus, depends_on };
    });
    return (await Promise.all(nodes)).filter((node) => node !== undefined);
  }
}
