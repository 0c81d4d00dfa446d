import type { Tasks } from './tasks.ts';

/** The clean-up scopes of the seed. */
export const RESET_SCOPES = ['all', 'queue', 'errors', 'progress', 'tasks', 'agents'] as const;
export type ResetScope = (typeof RESET_SCOPES)[number];

/** Clears by our own list of keys, never by a pattern: others may use the same prefix. Answers with how many keys went. */
export async function reset(tasks: Tasks, scope: ResetScope): Promise<number> {
  const { connection, keys } = tasks.store;
  const redis = connection.commands;
  const is = (...scopes: readonly ResetScope[]) => scope === 'all' || scopes.includes(scope);
  let gone = 0;
  if (is('tasks')) gone += await resetTasks(tasks);
  if (is('queue', 'tasks')) gone += await redis.del(keys.taskQueue(), keys.offeredTasks(), keys.pausedQueue());
  if (is('errors')) gone += await redis.del(keys.errorList());
  if (is('progress', 'tasks')) gone += await redis.del(keys.progress());
  if (is('agents')) {
    for (const agent of await redis.smembers(keys.knownAgents())) gone += await redis.del(keys.agent(agent));
    gone += await redis.del(keys.knownAgents());
  }
  return gone;
}

/** Whoever works on something loses it first, so that no lock is left of a task that is not there any more. */
async function resetTasks(tasks: Tasks): Promise<number> {
  const { store, work } = tasks;
  const { connection, keys } = store;
  const redis = connection.commands;
  let gone = 0;
  const ids = await store.ids();
  const records = await store.records(ids, ['status', 'agent', 'lane']);
  for (const [at, id] of ids.entries()) {
    const [status, agent, lane] = records[at] as (string | null)[];
    if (status === 'assigned' || status === 'in_progress') await work.drop({ task: id, agent: agent ?? '' }, 'reset');
    const ade = store.adeId(id);
    gone += await redis.del(
      keys.taskRecord(id),
      keys.taskStatus(id),
      keys.taskResult(id),
      keys.taskDependencies(id),
      keys.taskMeta(id),
      keys.openDependencies(id),
      keys.dependents(id),
      keys.parkedTasks(id),
      keys.lateResults(id),
      keys.taskState(ade),
      keys.taskData(ade),
      keys.taskConfig(ade),
      keys.taskMetadata(ade),
      keys.taskExecution(ade),
    );
    if (lane) await redis.del(keys.readyTasks(lane));
    for (const state of ['APPROVED', 'APPLYING', 'COMPLETED', 'CANCELLED'] as const) {
      await redis.zrem(keys.tasksByState(state), ade);
    }
  }
  gone += await redis.del(
    keys.knownTasks(),
    keys.readyOrder(),
    keys.runningTasks(),
    keys.delayedTasks(),
    keys.deadTasks(),
    keys.quarantine(),
    keys.heldExclusive(),
    keys.heldShared(),
    keys.taskCounts(),
    keys.prdOutbox(),
  );
  return gone;
}
