import { taskSchema } from '../coordinator/tasks/task.ts';
import type { TaskStore } from '../coordinator/tasks/task-store.ts';
import { jsonOr } from '../coordinator/tasks/task-view.ts';
import { unlessWrongType } from '../redis/wrong-type.ts';
import type { ArchivedDocument } from './archived-task.ts';

/** Reads all that Redis knows of a task; undefined if it has just been forgotten. */
export async function readDocument(store: TaskStore, task: string): Promise<ArchivedDocument | undefined> {
  const { connection, keys } = store;
  const redis = connection.commands;
  const ade = store.adeId(task);
  const [data, config, metadata, execution, risk, preview, result, votes, tally, comments, late] = await Promise.all([
    redis.get(keys.taskData(ade)),
    redis.hgetall(keys.taskConfig(ade)),
    redis.hgetall(keys.taskMetadata(ade)),
    redis.hgetall(keys.taskExecution(ade)),
    redis.hgetall(keys.taskRisk(ade)),
    redis.get(keys.taskPreview(ade)),
    unlessWrongType(redis.get(keys.taskResult(task)), null),
    redis.hgetall(keys.approvalVotes(ade)),
    redis.hgetall(keys.taskApprovalStats(ade)),
    redis.lrange(keys.taskComments(ade), 0, -1),
    redis.lrange(keys.lateResults(task), 0, -1),
  ]);
  if (data === null) return undefined;
  return {
    data: taskSchema.parse(JSON.parse(data)),
    config,
    metadata,
    execution,
    risk,
    preview: jsonOr(preview),
    result: jsonOr(result),
    requests: await requestsOf(store, ade),
    votes: Object.fromEntries(Object.entries(votes).map(([person, vote]) => [person, jsonOr(vote)])),
    tally,
    comments: comments.map(jsonOr),
    late_results: late.map(jsonOr),
  };
}

async function requestsOf({ connection, keys }: TaskStore, ade: string): Promise<Record<string, string>[]> {
  const redis = connection.commands;
  const ids = (await redis.smembers(keys.approvalIndex(ade))).sort((a, b) =>
    a.localeCompare(b, 'en', { numeric: true }),
  );
  return Promise.all(ids.map(async (id) => ({ approval_id: id, ...(await redis.hgetall(keys.approvalRequest(id))) })));
}
