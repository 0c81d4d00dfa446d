import type { Logger } from '../../log.ts';
import { dependencyGraph } from './dependencies.ts';
import { judgeNear } from './near-judgement.ts';
import type { ChosenOrder, PriorityOrder } from './priority.ts';
import { type GraphTask, judgeAll, type KnownTask, type Placing } from './task-graph.ts';
import type { TaskStore } from './task-store.ts';

/** A task as it was and as it will be. Without a before it is new. */
export interface Changed {
  readonly before?: KnownTask | undefined;
  readonly after: GraphTask;
}

export interface Judged {
  /** Where those that change belong. */
  readonly placings: ReadonlyMap<string, Placing>;
  /** Of the others, those that belong elsewhere since; an edge that is not named is as it was. */
  readonly moved: ReadonlyMap<string, Partial<Placing>>;
  /** Who waits for any of these, directly, when all is changed. */
  readonly waitingFor: WaitingFor;
  readonly direction: ChosenOrder;
  readonly cycles: readonly (readonly string[])[];
}
export type WaitingFor = (ids: readonly string[]) => readonly string[] | Promise<readonly string[]>;

export interface JudgeOptions {
  readonly store: TaskStore;
  readonly log: Logger;
  readonly wanted: () => PriorityOrder;
  /** From how many tasks on a change is judged by what is near it. */
  readonly nearFrom?: number | undefined;
}

/** A change of more than this share is as well judged with all the others. */
const SHARE = 8;

/** Judges what a change of some tasks means for them and for the others: who waits for whom, who must not start, who is how urgent. */
export class TaskJudge {
  readonly #options: JudgeOptions;
  #order = '';

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  async judge(changes: readonly Changed[]): Promise<Judged> {
    const { store, nearFrom = 500 } = this.#options;
    const wanted = await this.#wanted();
    const size = await store.size();
    const isFew = size >= nearFrom && changes.length * SHARE <= size;
    const near = isFew ? await judgeNear(store, changes, wanted) : undefined;
    const judged = near ?? (await this.#judgeAll(changes, wanted));
    this.#tell(judged);
    return judged;
  }

  /** Keeps what the next change is weighed against. Called when this one is carried out. */
  async remember({ direction }: Judged): Promise<void> {
    const { connection, keys } = this.#options.store;
    const { order, votes } = direction;
    await connection.commands.hset(keys.taskCounts(), { order, votes_asc: votes.asc, votes_desc: votes.desc });
  }

  /** A file whose format says which end of the priorities is urgent: its word stands, where no setting says otherwise. */
  async heed(order: 'asc' | 'desc' | undefined): Promise<void> {
    const { connection, keys } = this.#options.store;
    if (order) await connection.commands.hset(keys.taskCounts(), { file_order: order });
    else await connection.commands.hdel(keys.taskCounts(), 'file_order');
  }

  async #wanted(): Promise<PriorityOrder> {
    const { store, wanted } = this.#options;
    const order = wanted();
    if (order !== 'auto') return order;
    const said = await store.connection.commands.hget(store.keys.taskCounts(), 'file_order');
    return said === 'asc' || said === 'desc' ? said : 'auto';
  }

  async #judgeAll(changes: readonly Changed[], wanted: PriorityOrder): Promise<Judged> {
    const { store } = this.#options;
    const known = await store.graphTasks();
    const changed = new Set(changes.map(({ after }) => after.task_id));
    const others = known.filter(({ task_id }) => !changed.has(task_id));
    const { placings, graph, order } = judgeAll([...others, ...changes.map(({ after }) => after)], wanted);
    const before = dependencyGraph(known).dependencies;
    const isElsewhere = ({ task_id, rank, quarantine }: KnownTask) => {
      const placing = placings.get(task_id)!;
      const needs = before.get(task_id)!;
      return placing.rank !== rank || placing.quarantine !== quarantine || placing.deps.join() !== needs.join();
    };
    return {
      placings: new Map([...changed].map((id) => [id, placings.get(id)!])),
      moved: new Map(others.filter(isElsewhere).map(({ task_id }) => [task_id, placings.get(task_id)!])),
      waitingFor: (ids) => ids.flatMap((id) => graph.dependents.get(id) ?? []),
      direction: order,
      cycles: graph.cycles,
    };
  }

  #tell({ direction: { order, because }, cycles }: Judged): void {
    const { log } = this.#options;
    if (this.#order !== order) log.info('priorities are read in this direction', { order, because });
    this.#order = order;
    for (const cycle of cycles) log.warn('dependencies go in a circle', { cycle: cycle.join(' → ') });
  }
}

/** Dependencies before what waits for them, so that each edge finds its other end; those in a circle come last, in any order. */
export function inOrder(placings: ReadonlyMap<string, Placing>): string[] {
  const own = [...placings].map(([task_id, { deps }]) => ({
    task_id,
    depends_on: deps.filter((id) => placings.has(id)),
  }));
  return [...new Set([...dependencyGraph(own).order, ...placings.keys()])];
}
