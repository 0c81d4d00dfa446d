import { z } from 'zod';
import type { Clock } from '../clock.ts';
import { type LockMode, type LockRef, parseLock } from '../coordinator/locks/lock.ts';
import type { Locks } from '../coordinator/locks/locks.ts';
import { reason } from '../errors.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import { nameStatus } from './scripts.ts';

export interface AdeV1Options {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly locks: Locks;
  readonly clock: Clock;
}

/** One key of the first version, and what becomes of it. */
export interface Step {
  readonly key: string;
  readonly outcome: 'move' | 'drop' | 'leave';
  /** Where it goes. */
  readonly to?: string;
  readonly why?: string;
}

/** Approval statuses were the numbers of this list. */
const STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'DELEGATED'];
const V1_LOCKS = 'lock:*';
const PAGE = 500;

const holder = z.object({ agent_id: z.string() });
const v1Lock = z.object({
  holder_agent_id: z.string().optional(),
  exclusive_holder: z.string().optional(),
  mode: z.enum(['exclusive', 'shared']).default('exclusive'),
  holders: z.array(holder).default([]),
  expires_at: z.string().optional(),
  purpose: z.string().optional(),
});
const v1Capacity = z.object({ max_tasks: z.coerce.number().int().positive() });

/**
 * Brings data of the first version (`lock:*`, statuses as numbers) into the form of this one. Without `apply` it only says what it
 * would do. Each key is taken over and then removed, so that it can be run again at any time, and after a crash.
 */
export async function migrateAdeV1(options: AdeV1Options, apply: boolean): Promise<Step[]> {
  const steps: Step[] = [];
  for await (const key of scan(options.connection, V1_LOCKS)) steps.push(await moveLock(options, key, apply));
  for await (const key of scan(options.connection, 'ade:approval:request:*')) {
    const step = await nameNumber(options, key, apply);
    if (step) steps.push(step);
  }
  return steps.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

async function moveLock(options: AdeV1Options, key: string, apply: boolean): Promise<Step> {
  const redis = options.connection.commands;
  const [, rest = ''] = /^lock:(.*)$/s.exec(key) ?? [];
  try {
    if (rest.endsWith(':queue')) {
      if (apply) await redis.del(key);
      return { key, outcome: 'drop', why: 'whoever waits asks again' };
    }
    const fields = await read(options, key);
    const agent = /^agent:(.+):capacity$/.exec(rest)?.[1];
    if (agent !== undefined) return await moveCapacity(options, { key, agent, fields, apply });
    return await moveHolders(options, { key, lock: parseLock(rest), fields, apply });
  } catch (error) {
    return { key, outcome: 'leave', why: reason(error) };
  }
}

async function moveCapacity(
  { locks, connection }: AdeV1Options,
  { key, agent, fields, apply }: { key: string; agent: string; fields: unknown; apply: boolean },
): Promise<Step> {
  const { max_tasks: maxTasks } = v1Capacity.parse(fields);
  if (apply) {
    await locks.setCapacity(agent, { maxTasks });
    await connection.commands.del(key);
  }
  return { key, outcome: 'move', to: `agent:${agent}, ${maxTasks} tasks` };
}

async function moveHolders(
  options: AdeV1Options,
  { key, lock, fields, apply }: { key: string; lock: LockRef; fields: unknown; apply: boolean },
): Promise<Step> {
  const { holder_agent_id, exclusive_holder, mode, holders, expires_at, purpose } = v1Lock.parse(fields);
  const redis = options.connection.commands;
  const single = holder_agent_id ?? exclusive_holder;
  const agents = mode === 'shared' ? holders.map(({ agent_id }) => agent_id) : single ? [single] : [];
  const leaseMs = await leftOf(options, key, expires_at);
  if (agents.length === 0 || leaseMs <= 0) {
    if (apply) await redis.del(key);
    return { key, outcome: 'drop', why: agents.length === 0 ? 'nobody holds it' : 'its time is over' };
  }
  if (apply) {
    for (const agent of agents) {
      const refused = await take(options, { lock, mode, agent, leaseMs, purpose });
      if (refused) return { key, outcome: 'leave', why: `${agent} was not granted it: ${refused}` };
    }
    await redis.del(key);
  }
  return { key, outcome: 'move', to: `ade:${key}, held by ${agents.join(', ')} for ${Math.ceil(leaseMs / 1000)} s` };
}

interface Held {
  readonly lock: LockRef;
  readonly mode: LockMode;
  readonly agent: string;
  readonly leaseMs: number;
  readonly purpose: string | undefined;
}

/** Under an id made of the agent's, so that asking again after a crash is the same request. */
async function take(
  { locks }: AdeV1Options,
  { lock, mode, agent, leaseMs, purpose }: Held,
): Promise<string | undefined> {
  const { outcome } = await locks.acquire({ locks: [{ lock, mode }], agent, lockId: `v1.${agent}`, leaseMs, purpose });
  return outcome === 'granted' ? undefined : outcome;
}

async function leftOf(
  { connection, clock }: AdeV1Options,
  key: string,
  expiresAt: string | undefined,
): Promise<number> {
  const left = await connection.commands.pttl(key);
  if (left >= 0) return left;
  return expiresAt === undefined ? 0 : Date.parse(expiresAt) - clock.now();
}

/** A hash, or the JSON text of one. */
async function read({ connection }: AdeV1Options, key: string): Promise<unknown> {
  const redis = connection.commands;
  if ((await redis.type(key)) === 'string') return JSON.parse((await redis.get(key)) ?? '{}') as unknown;
  const { holders, ...fields } = await redis.hgetall(key);
  return holders === undefined ? fields : { ...fields, holders: JSON.parse(holders) as unknown };
}

async function nameNumber(
  { connection, scripts }: AdeV1Options,
  key: string,
  apply: boolean,
): Promise<Step | undefined> {
  const number = await connection.commands.hget(key, 'status');
  if (number === null || !/^\d+$/.test(number)) return undefined;
  const word = STATUSES[Number(number)];
  if (!word) return { key, outcome: 'leave', why: `no status has the number ${number}` };
  if (apply) await scripts.run(nameStatus, { request: key }, { number, word });
  return { key, outcome: 'move', to: `status ${word}` };
}

/** Each key once; SCAN may give one twice. */
async function* scan({ commands }: Connection, pattern: string): AsyncIterable<string> {
  const seen = new Set<string>();
  for (let cursor = '0', more = true; more; more = cursor !== '0') {
    const [next, keys] = await commands.scan(cursor, 'MATCH', pattern, 'COUNT', PAGE);
    cursor = next;
    for (const key of keys) {
      if (!seen.has(key)) yield key;
      seen.add(key);
    }
  }
}
