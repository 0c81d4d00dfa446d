import type { Redis } from 'ioredis';
import { KEY_TABLE, type KeyspaceOptions, keyReader } from '../../src/redis/keys.ts';

/**
 * Every key in a test's Redis that no row of the key table explains, or that is of another type than its row says.
 * Each options object is one keyspace the test wrote to; none means the plain one.
 *
 *     afterEach(async () => expect(await undeclaredKeys(redis)).toEqual([]));
 */
export async function undeclaredKeys(redis: Redis, ...spaces: readonly KeyspaceOptions[]): Promise<string[]> {
  const readers = (spaces.length > 0 ? spaces : [{ mode: 'standalone' } as const]).map(keyReader);
  const complaints: string[] = [];
  for (const key of await allKeys(redis)) {
    const explained = readers.map((read) => read(key)).find((found) => found !== undefined);
    if (!explained) {
      complaints.push(`${key}: no row explains it`);
      continue;
    }
    const [type, declared] = [await redis.type(key), KEY_TABLE[explained.name].type];
    // A key that expired between SCAN and TYPE has none, and is no one's fault.
    if (type !== 'none' && type !== declared)
      complaints.push(`${key}: is a ${type}, ${explained.name} is a ${declared}`);
  }
  return complaints.sort();
}

/** For the end of each test: throws when there is such a key. */
export async function refuseStrayKeys(redis: Redis, ...spaces: readonly KeyspaceOptions[]): Promise<void> {
  const stray = await undeclaredKeys(redis, ...spaces);
  if (stray.length > 0) throw new Error(`stray keys: ${stray.join('; ')}`);
}

async function allKeys(redis: Redis): Promise<Set<string>> {
  const found = new Set<string>();
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'COUNT', 1000);
    for (const key of keys) found.add(key);
    cursor = next;
  } while (cursor !== '0');
  return found;
}

/** For hooks, where nothing is expected: throws if there is such a key. */
export async function refuseUndeclaredKeys(redis: Redis, ...spaces: readonly KeyspaceOptions[]): Promise<void> {
  const complaints = await undeclaredKeys(redis, ...spaces);
  if (complaints.length > 0) throw new Error(complaints.join('\n'));
}
