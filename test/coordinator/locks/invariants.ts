import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../../../src/redis/connection.ts';
import { keyReader } from '../../../src/redis/keys.ts';
import type { OpenRoom } from './room.ts';

/**
 * What must be true of all locks at any moment, as complaints: no lock without an end, one exclusive holder or only
 * shared ones, lines and waiters one to one, every held lock in registry and indexes.
 */
export async function complaints(
  room: Pick<OpenRoom, 'connection' | 'locks' | 'keys'>,
  isQuiet = false,
): Promise<string[]> {
  const { connection, locks, keys } = room;
  const mode = locks.scripts.isCluster ? 'cluster' : 'standalone';
  const read = keyReader({ mode });
  const redis = connection.commands;
  const found: string[] = [];
  const held = new Set<string>();
  for (const key of await allKeys(redis)) {
    const explained = read(key);
    if (!explained) found.push(`${key}: no row explains it`);
    if (explained?.name === 'taskLock' || explained?.name === 'resourceLock') {
      held.add(key);
      if ((await redis.pttl(key)) === -1) found.push(`${key}: no lock may be without an end`);
      const lock = locks.scripts.lockOf(key);
      if (!lock) continue;
      const { holders } = await locks.look(lock);
      if (holders.length === 0) found.push(`${key}: held by nobody`);
      if (holders.length > 1 && holders.some((holder) => holder.mode === 'exclusive'))
        found.push(`${key}: two holders`);
      if ((await redis.zscore(keys.lockRegistry(), key)) === null) found.push(`${key}: not in the registry`);
      for (const { agent } of holders) {
        if ((await redis.sismember(keys.agentLocks(agent), key)) === 0)
          found.push(`${key}: not in the index of ${agent}`);
      }
    }
    if (explained?.name.endsWith('LockQueue') || explained?.name === 'agentCapacityQueue') {
      const waiters = await redis.hgetall(key.replace(/:queue$/, ':waiters'));
      const entries = Object.values(waiters)
        .filter((text) => !/^[!?]/.test(text))
        .map((text) => text.split('|').slice(2).join('|'));
      const line = await redis.zrange(key, '0', '-1');
      if (entries.sort().join() !== line.sort().join()) found.push(`${key}: line and waiters differ`);
    }
  }
  if (isQuiet) found.push(...(await orphans(room, held)));
  return found;
}

/** For afterEach: fails with the complaints. */
export async function mustBeSound(room: Pick<OpenRoom, 'connection' | 'locks' | 'keys'>): Promise<void> {
  const found = await complaints(room);
  if (found.length > 0) throw new Error(found.join('\n'));
}

/** After a quiet sweep the indexes name nothing that is not held. */
async function orphans(
  { connection, keys, locks }: Pick<OpenRoom, 'connection' | 'locks' | 'keys'>,
  held: Set<string>,
) {
  const redis = connection.commands;
  const found: string[] = [];
  for (const key of await allKeys(redis)) {
    const owner = locks.scripts.ownerOf(key);
    if (!owner) continue;
    for (const member of await redis.smembers(key)) if (!held.has(member)) found.push(`${key}: ${member} is not held`);
  }
  for (const member of await redis.zrange(keys.lockRegistry(), '0', '-1')) {
    if (!held.has(member) && !member.endsWith(':capacity')) found.push(`registry: ${member} is not held`);
  }
  return found;
}

async function allKeys(client: RedisClient): Promise<string[]> {
  const nodes: readonly Redis[] = client instanceof Cluster ? client.nodes('master') : [client];
  return (await Promise.all(nodes.map((node) => node.keys('*')))).flat();
}
