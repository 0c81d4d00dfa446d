import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { ReeveEvent } from '../../../src/events/catalogue.ts';
import { compareIds } from '../../../src/events/cursor.ts';
import { decodeEntry } from '../../../src/events/entry.ts';
import { keyReader, keyspace } from '../../../src/redis/keys.ts';
import { undeclaredKeys } from '../undeclared-keys.ts';
import { A_PERSON } from './person.ts';
import type { World } from './world.ts';

const SPELLING = { mode: 'standalone' } as const;
const keys = keyspace(SPELLING);

/**
 * What must hold after everything, once every task has ended:
 *
 *  1. Every row of the file is a task that is completed: by its record, its public status and its state of approval.
 *  2. Each has exactly one recorded completion: one event, one row of the file's log, one readable result that names it.
 *  3. `progress` is a recount, whatever plain clients added to it.
 *  4. The file says the same as Redis, nothing waits to be written to it, and no log row is there twice.
 *  5. Nothing is held: no lock, no mark of a resource, no place of an agent, no claim; nothing is queued, parked or delayed.
 *  6. Every key is declared, of its type, and belongs to a task or agent that is known.
 *  7. The events, of the streams and the archive together, lead to the same state: each task's changes follow on one
 *     another without a gap from approved to completed, and whatever lock was granted was also given back or ended.
 */
export async function expectSoundEnd(world: World, redis: Redis, count: number): Promise<void> {
  const file = new Database(world.prd, { readonly: true });
  const archive = new Database(join(world.daemon.dataDir, 'reeve.db'), { readonly: true });
  try {
    const ids = file.prepare('select task_id from tasks').pluck().all() as string[];
    expect.soft(ids.length).toBe(count);
    expect.soft((await redis.zrange(keys.knownTasks(), '0', '-1')).sort()).toEqual([...ids].sort());
    const work = await eventsOf(redis, archive, 'work', keys.coordinationEvents());
    await expectCompletedOnce(redis, file, ids, work);
    await expectRecount(redis, ids);
    await expectFileAgrees(redis, file);
    await expectNothingHeld(redis);
    await expectKnownKeys(redis, ids);
    expectStatesFollow(await eventsOf(redis, archive, 'task', keys.events('task')), ids);
    expect.soft(world.logged('a stream was trimmed before its events were archived')).toEqual([]);
    expectLocksEnd(await eventsOf(redis, archive, 'lock', keys.events('lock')));
  } finally {
    file.close();
    archive.close();
  }
}

async function expectCompletedOnce(redis: Redis, file: Database.Database, ids: string[], work: ReeveEvent[]) {
  const completions = new Map<string, number>();
  for (const { event, payload } of work) {
    const task = String(payload.task_id);
    if (event === 'task_completed') completions.set(task, (completions.get(task) ?? 0) + 1);
  }
  const logged = new Map(
    file
      .prepare(`select task_id, count(*) from redis_coordination where event_type = 'task_completed' group by task_id`)
      .raw()
      .all() as [string, number][],
  );
  const wrong: string[] = [];
  for (const id of ids) {
    const [status, record, state, result] = await Promise.all([
      redis.get(keys.taskStatus(id)),
      redis.hget(keys.taskRecord(id), 'status'),
      redis.get(keys.taskState(id)),
      redis.get(keys.taskResult(id)),
    ]);
    const seen = `${status} ${record} ${state} ${completions.get(id)} ${logged.get(id)} ${taskOf(result)}`;
    if (seen !== `completed completed COMPLETED 1 1 ${id}`) wrong.push(`${id}: ${seen}`);
  }
  expect.soft(wrong).toEqual([]);
}

async function expectRecount(redis: Redis, ids: string[]) {
  const expected = { total: ids.length, pending: 0, in_progress: 0, completed: ids.length, failed: 0, blocked: 0 };
  const texts = Object.fromEntries(Object.entries(expected).map(([field, number]) => [field, String(number)]));
  expect.soft(await redis.hgetall(keys.progress())).toEqual(texts);
}

async function expectFileAgrees(redis: Redis, file: Database.Database) {
  expect.soft(file.prepare(`select task_id, status from tasks where status <> 'completed'`).all()).toEqual([]);
  expect.soft(await redis.xlen(keys.prdOutbox())).toBe(0);
  const wrong: string[] = [];
  for (const row of file.prepare('select task_id, assigned_agent from tasks').all()) {
    const { task_id, assigned_agent } = row as { task_id: string; assigned_agent: string | null };
    const agent = await redis.hget(keys.taskRecord(task_id), 'agent');
    // What a person wrote there stays.
    if (assigned_agent !== A_PERSON && (assigned_agent ?? '') !== (agent ?? ''))
      wrong.push(`${task_id}: ${assigned_agent} in the file, ${agent} in Redis`);
  }
  expect.soft(wrong).toEqual([]);
}

async function expectNothingHeld(redis: Redis) {
  const sets = {
    locks: keys.lockRegistry(),
    waited: keys.waitedLocks(),
    exclusive: keys.heldExclusive(),
    shared: keys.heldShared(),
    running: keys.runningTasks(),
    delayed: keys.delayedTasks(),
    order: keys.readyOrder(),
    offered: keys.offeredTasks(),
  };
  for (const [name, key] of Object.entries(sets))
    expect.soft([name, await redis.zrange(key, '0', '-1')]).toEqual([name, []]);
  expect.soft(await redis.lrange(keys.taskQueue(), 0, -1)).toEqual([]);
  for (const agent of await redis.smembers(keys.knownAgents())) {
    expect.soft([agent, await redis.hgetall(keys.agentClaims(agent))]).toEqual([agent, {}]);
    expect.soft([agent, (await redis.hget(keys.agentCapacity(agent), 'active_tasks')) ?? '0']).toEqual([agent, '0']);
    const row = await redis.hgetall(keys.agent(agent));
    if (row.status === 'working' && !agent.startsWith('raw')) expect.soft([agent, row]).toEqual([agent, {}]);
  }
}

/** Rows of which nothing may be left when no task runs. */
const GONE = [
  'taskLock',
  'taskLockQueue',
  'taskLockWaiters',
  'resourceLock',
  'resourceLockQueue',
  'agentCapacityLeases',
];
const EMPTIED = ['openDependencies', 'parkedTasks', 'readyTasks', 'agentLocks', 'waitFor', 'resourceLocks'];

async function expectKnownKeys(redis: Redis, ids: readonly string[]) {
  expect.soft(await undeclaredKeys(redis)).toEqual([]);
  const explain = keyReader(SPELLING);
  const known = new Set(ids);
  const agents = new Set(await redis.smembers(keys.knownAgents()));
  const orphans: string[] = [];
  for (let cursor = '0'; ; ) {
    const [next, page] = await redis.scan(cursor, 'COUNT', 1_000);
    for (const key of page) {
      const { name, parts } = explain(key)!;
      if ([...GONE, ...EMPTIED].includes(name)) orphans.push(`${key} is left`);
      if (parts.task !== undefined && !known.has(parts.task)) orphans.push(`${key} is of no known task`);
      const agent = parts.agent;
      const isKnown = agent === undefined || agents.has(agent) || agent.startsWith('raw.');
      if (!isKnown) orphans.push(`${key} is of no known agent`);
    }
    cursor = next;
    if (cursor === '0') break;
  }
  expect.soft(orphans.sort()).toEqual([]);
}

/** Whatever is in a stream or was moved from it to the archive, in order, once each. */
async function eventsOf(redis: Redis, archive: Database.Database, stream: 'work' | 'task' | 'lock', key: string) {
  const all = new Map<string, ReeveEvent>();
  for (const row of archive.prepare('select * from events where stream = ?').all(stream)) {
    const { id, event, at, source, payload } = row as Record<'id' | 'event' | 'at' | 'source' | 'payload', string>;
    all.set(id, { stream, id, event, at, source, payload: JSON.parse(payload) });
  }
  for (const [id, flat] of await redis.xrange(key, '-', '+')) all.set(id, decodeEntry(stream, id, flat));
  return [...all.values()].sort((a, b) => compareIds(a.id, b.id));
}

function expectStatesFollow(events: readonly ReeveEvent[], ids: readonly string[]) {
  const state = new Map(ids.map((id) => [id, 'APPROVED']));
  const gaps: string[] = [];
  for (const { payload } of events) {
    const { task_id, from, to } = payload as Record<'task_id' | 'from' | 'to', string>;
    if (state.get(task_id) !== from) gaps.push(`${task_id} went from ${from} to ${to}, but was ${state.get(task_id)}`);
    state.set(task_id, to);
  }
  expect.soft(gaps).toEqual([]);
  expect.soft([...state].filter(([, last]) => last !== 'COMPLETED')).toEqual([]);
}

const BEGINS = new Set(['lock:acquired']);
const ENDS = new Set(['lock:released', 'lock:expired', 'lock:broken', 'lock:aborted']);

function expectLocksEnd(events: readonly ReeveEvent[]) {
  const held = new Map<string, string>();
  for (const { event, payload } of events) {
    // The locks of a lease are taken and given back together: one event names them all.
    for (const lock of [payload.lock, ...((payload.with ?? []) as unknown[])].map(String)) {
      const grant = `${lock} ${String(payload.lock_id ?? payload.agent_id)}`;
      if (BEGINS.has(event)) held.set(grant, lock);
      if (ENDS.has(event)) held.delete(grant);
    }
  }
  const history = (lock: string) =>
    events
      .filter(({ payload }) => payload.lock === lock)
      .map(({ id, event, payload }) => `${id} ${event} ${String(payload.lock_id)}`);
  expect.soft([...held.values()].map((lock) => history(lock))).toEqual([]);
}

function taskOf(result: string | null): string | undefined {
  try {
    return (JSON.parse(result ?? '{}') as { task_id?: string }).task_id;
  } catch {
    return 'unreadable';
  }
}
