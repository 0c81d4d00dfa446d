import { indexKey } from './found.ts';
import { TASK_STATES } from './task.ts';
import type { TaskStore } from './task-store.ts';
import type { Tasks } from './tasks.ts';

/** The clean-up scopes that scripts of plain clients know. */
export const RESET_SCOPES = ['all', 'queue', 'errors', 'progress', 'tasks', 'agents'] as const;
export type ResetScope = (typeof RESET_SCOPES)[number];

/** Clears by our own list of keys, never by a pattern: others may use the same prefix. Answers with how many keys went. */
export async function reset(tasks: Tasks, scope: ResetScope): Promise<number> {
  const { connection, keys } = tasks.store;
  const redis = connection.commands;
  const is = (...scopes: readonly ResetScope[]) => scope === 'all' || scopes.includes(scope);
  let gone = 0;
  await tasks.ledger.writeUpOnce();
  if (is('tasks')) gone += await resetTasks(tasks);
  if (is('queue', 'tasks')) {
    gone += await redis.del(keys.taskQueue(), keys.offeredTasks());
    if (tasks.store.isDefaultProject) gone += await redis.del(keys.mirrorQueue());
  }
  if (is('errors')) gone += await redis.del(keys.errorList());
  if (is('progress', 'tasks')) gone += await redis.del(keys.progress());
  if (is('agents')) {
    for (const agent of await redis.smembers(keys.knownAgents())) gone += await redis.del(keys.agent(agent));
    gone += await redis.del(keys.knownAgents());
  }
  return gone;
}

const CHUNK = 200;

/** Whoever works on something loses it first, so that no lock is left of a task that is not there any more. */
async function resetTasks(tasks: Tasks): Promise<number> {
  const { connection, keys } = tasks.store;
  const redis = connection.commands;
  const ids = await tasks.store.ids();
  const lanes = new Set<string>();
  let gone = 0;
  for (let at = 0; at < ids.length; at += CHUNK) {
    const part = ids.slice(at, at + CHUNK);
    const records = await tasks.store.records(part, ['status', 'agent', 'lane', 'found_by']);
    const counts = await Promise.all(part.map((id, n) => forget(tasks, id, records[n] as (string | null)[])));
    for (const count of counts) gone += count;
    for (const [, , lane] of records) if (lane) lanes.add(lane);
  }
  for (const lane of lanes) gone += await redis.del(keys.readyTasks(lane));
  gone += await redis.del(
    keys.knownTasks(),
    keys.spellings(),
    keys.readyOrder(),
    keys.runningTasks(),
    keys.leasesLookedAt(),
    keys.delayedTasks(),
    keys.parkedOrder(),
    keys.pausedTasks(),
    keys.deadTasks(),
    keys.quarantine(),
    keys.heldExclusive(),
    keys.heldShared(),
    keys.listedExclusive(),
    keys.listedShared(),
    keys.parentTasks(),
    keys.taskCounts(),
    keys.prdOutbox(),
    keys.ledger(),
    keys.openedTasks(),
  );
  return gone;
}

async function forget({ store, work }: Tasks, id: string, [status, agent, , found]: readonly (string | null)[]) {
  const { connection, keys } = store;
  const redis = connection.commands;
  if (status === 'assigned' || status === 'in_progress') await work.drop({ task: id, agent: agent ?? '' }, 'reset');
  const ade = store.adeId(id);
  const author = await redis.hget(keys.taskMetadata(ade), 'author_id');
  await Promise.all([
    ...TASK_STATES.map((state) => redis.zrem(keys.tasksByState(state), ade)),
    ...(JSON.parse(found || '[]') as string[][]).map((place) => redis.zrem(indexKey(keys, place), ade)),
    author ? redis.zrem(keys.tasksByAuthor(author), ade) : 0,
  ]);
  const asked = await forgetApprovals(store, ade);
  const own = await redis.del(
    keys.taskRecord(id),
    keys.taskStatus(id),
    keys.taskResult(id),
    keys.taskDependencies(id),
    keys.taskMeta(id),
    keys.openDependencies(id),
    keys.dependents(id),
    keys.parkedTasks(id),
    keys.childTasks(id),
    keys.lateResults(id),
    keys.taskState(ade),
    keys.taskData(ade),
    keys.taskConfig(ade),
    keys.taskMetadata(ade),
    keys.taskExecution(ade),
    keys.taskPreview(ade),
    keys.taskRisk(ade),
    keys.mirrorStatus(ade),
  );
  return own + asked;
}

/** A task of the same id and content that somebody writes later must not pass by what people said of this one. */
async function forgetApprovals({ connection, keys }: TaskStore, ade: string): Promise<number> {
  const redis = connection.commands;
  const requests = await redis.smembers(keys.approvalIndex(ade));
  for (const id of requests) {
    const reviewer = await redis.hget(keys.approvalRequest(id), 'reviewer_id');
    if (reviewer) await redis.zrem(keys.userApprovalQueue(reviewer), id);
    await redis.zrem(keys.approvalQueue(), id);
    await redis.del(keys.approvalRequest(id));
  }
  const votes = [keys.approvalVotes(ade), keys.taskApprovalStats(ade), keys.taskOverride(ade), keys.taskComments(ade)];
  return requests.length + (await redis.del(keys.approvalIndex(ade), ...votes));
}
