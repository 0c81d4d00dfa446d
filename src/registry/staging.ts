import type { RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { pacedMap } from './pace.ts';
import { type Command, send, spread } from './transaction.ts';
import type { Draft } from './writes.ts';

const AT_ONCE = 500;

/** The transaction that makes a staged publish visible. Its first commands may find nothing to move; that is no failure. */
export interface Staged {
  readonly commands: readonly Command[];
  readonly mayMiss: number;
}

/**
 * Writes a large publish beside the live keys, in pieces small enough that Redis serves others in between, and returns the
 * renames that make it visible. Nothing is freed in the transaction either: what it replaces is moved away and freed after.
 * The journal names every key before it is written: a crash leaves nothing unknown behind.
 */
export async function stage(client: RedisClient, keys: Keyspace, fence: number, draft: Draft): Promise<Staged> {
  const { structures, assets, removed, search, told, rest, rebuild } = draft;
  const displaced = [...assets.filter(({ isNew }) => !isNew), ...removed];
  const events = keys.assetStageEvents(String(fence));
  const names = [
    ...structures.map(({ staged }) => staged),
    events,
    ...search.newKeys,
    ...assets.map(({ staged }) => staged),
    ...displaced.map(({ old }) => old),
  ];
  await send(client, spread(['RPUSH', keys.assetStageJournal()], names, AT_ONCE));
  for (const { live, staged, writes, isKept } of structures) {
    if (!rebuild || isKept) await client.call('COPY', live, staged, 'REPLACE');
    await send(client, writes(staged));
  }
  await send(
    client,
    (function* () {
      for (const { staged, fields } of assets) yield ['HSET', staged, ...fields()] as Command;
    })(),
  );
  const outbox = await pacedMap(told, (fields) => JSON.stringify(fields));
  await send(client, spread(['RPUSH', events], outbox, AT_ONCE));
  await search.build();

  const swaps: Command[] = [];
  for (const { live, staged } of structures) {
    // A structure that became empty has no key, and there is nothing to rename.
    swaps.push(['UNLINK', live]);
    if (await client.exists(staged)) swaps.push(['RENAME', staged, live]);
  }
  if (told.length > 0) swaps.push(['RENAME', events, keys.assetSyncOutbox()]);
  const commands: Command[] = [
    ...displaced.map(({ live, old }): Command => ['RENAME', live, old]),
    ...swaps,
    ...assets.map(({ live, staged }): Command => ['RENAME', staged, live]),
    ...search.flip(),
    ...rest,
  ];
  return { commands, mayMiss: displaced.length };
}

/**
 * Removes what a publish has replaced, or staged and never finished. Whoever does this has the highest fencing number, so a
 * paused publisher whose keys go away here can no longer commit: it watches that number.
 */
export async function clearStaging(client: RedisClient, keys: Keyspace, fence: number): Promise<number> {
  const journal = keys.assetStageJournal();
  const newest = Number((await client.get(keys.assetSyncFence())) ?? 0);
  if (newest > fence) return 0;
  const current = await client.hget(keys.assetSearchIndex(), 'generation');
  const live = new Set(current ? [keys.assetSearchWords(current), keys.assetSearchDocs(current)] : []);
  let cleared = 0;
  for (;;) {
    const names = await client.lrange(journal, 0, AT_ONCE - 1);
    if (names.length === 0) return cleared;
    const leftovers = names.filter((name) => !live.has(name));
    if (leftovers.length > 0) cleared += await client.unlink(...leftovers);
    await client.ltrim(journal, names.length, -1);
  }
}
