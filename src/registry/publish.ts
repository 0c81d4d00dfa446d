import type { Redis } from 'ioredis';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { releaseWrites } from './history-writes.ts';
import { drainOutbox, tellAfterwards, tellings } from './outbox.ts';
import type { Plan } from './plan.ts';
import { clearStaging, stage } from './staging.ts';
import { type SyncState, stateOf } from './state.ts';
import { type Command, ownerOf, transact } from './transaction.ts';
import { type Draft, draftWrites } from './writes.ts';

export interface Publication {
  readonly plan: Plan;
  /** Name of the source, for events and history. */
  readonly source: string;
  /** The commit the plan was made against; undefined for the first sync. Anything else in Redis means: stale. */
  readonly previousCommit: string | undefined;
  /** Fencing number of the sync lock; a publish with a lower one than was ever given out is refused. */
  readonly fence: number;
  readonly configFingerprint: string;
  /** Who made the commit, for events and history, if the source knows. */
  readonly author?: string;
  /** Told of each step when it is done. */
  readonly progress?: (step: PublishStep) => void | Promise<void>;
}

/** The steps of a publish. Up to `staged` nothing is visible; from `committed` on everything is. */
export type PublishStep = 'cleared' | 'read' | 'staged' | 'committed' | 'told';

export type Published =
  | { readonly outcome: 'published'; readonly generation: number; readonly changed: number }
  /** Someone else published, or a newer sync has begun: read known() again and plan anew. Nothing was written. */
  | { readonly outcome: 'stale'; readonly commit: string | undefined; readonly fence: number };

export interface PublishOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  /** About how many entries the event stream keeps. */
  readonly keepEvents: number;
  /** Of a namespace: the stream that everybody follows, where its events are told as well. */
  readonly common?: { readonly stream: string; readonly namespace: string } | undefined;
}

/** More changes than this are staged: written beside the live keys first, and only renamed in the transaction. */
export const STAGE_ABOVE = 200;
const MOST_TRIES = 5;

/**
 * Makes a plan visible: all of it in one MULTI/EXEC, or nothing. What it rests on (the published commit, the fencing number)
 * is watched from before it is read, so that a second daemon or a paused one that wakes up changes nothing.
 */
export async function publish(options: PublishOptions, publication: Publication, rebuild = false): Promise<Published> {
  const { connection, keys } = options;
  const progress = publication.progress ?? (() => {});
  await drainOutbox(options);
  await clearStaging(connection.commands, keys, publication.fence);
  await progress('cleared');
  const published = await connection.exclusive(async (lent): Promise<Published> => {
    const client = await ownerOf(lent, keys.assetSyncState());
    for (let attempt = 1; ; attempt++) {
      const tried = await attemptOnce(client, options, publication, rebuild, progress);
      if (tried || attempt === MOST_TRIES) return tried ?? staleAt(await readState(client, keys), publication.fence);
      await clearStaging(connection.commands, keys, publication.fence);
    }
  });
  if (published.outcome === 'stale') {
    await clearStaging(connection.commands, keys, publication.fence);
    return published;
  }
  await progress('committed');
  await clearStaging(connection.commands, keys, publication.fence);
  await drainOutbox(options);
  await progress('told');
  return published;
}

/** Undefined: someone touched what was watched (it may have been only the status), so look again. */
async function attemptOnce(
  client: Redis,
  options: PublishOptions,
  publication: Publication,
  rebuild: boolean,
  progress: (step: PublishStep) => void | Promise<void>,
): Promise<Published | undefined> {
  const { keys, connection } = options;
  const { plan, previousCommit, fence } = publication;
  await client.watch(keys.assetSyncState(), keys.assetSyncFence(), keys.assetSyncOutbox());
  const state = await readState(client, keys);
  const newest = Math.max(state.fence, Number((await client.get(keys.assetSyncFence())) ?? 0));
  if (state.last_commit_sha !== previousCommit || newest > fence) {
    await client.unwatch();
    return staleAt(state, newest);
  }
  const draft = await draftWrites({ ...options, client: connection.commands, state, publication, rebuild });
  await progress('read');
  const isLarge = rebuild || plan.puts.length + plan.removes.length > STAGE_ABOVE;
  const { commands, mayMiss } = isLarge
    ? await stage(connection.commands, keys, fence, draft)
    : { commands: await inPlace(options, draft), mayMiss: 0 };
  await progress('staged');
  const failures = await transact(client, commands);
  if (!failures) return undefined;
  const errors = failures.filter(({ at }) => at >= mayMiss).map(({ error }) => error);
  if (errors.length > 0) await admitDamage(client, keys, errors);
  if (!isLarge) await tellAfterwards(options, draft.told);
  return { outcome: 'published', generation: draft.generation, changed: plan.changes.length };
}

async function inPlace(options: PublishOptions, draft: Draft): Promise<Command[]> {
  const { structures, assets, removed, search, rest, told } = draft;
  const { connection, keys } = options;
  return [
    ...structures.flatMap(({ live, writes }) => [...writes(live)]),
    ...assets.flatMap(({ live, fields }): Command[] => [
      ['DEL', live],
      ['HSET', live, ...fields()],
    ]),
    ...removed.map(({ live }): Command => ['DEL', live]),
    ...search.inPlace(),
    ...(await releaseWrites(connection.commands, keys, told)),
    ...told.flatMap((fields) => tellings(options, fields)),
    ...rest,
  ];
}

/** A command failed inside EXEC (somebody's key of another type was in the way) and the others ran: the next check repairs it. */
async function admitDamage(client: Redis, keys: Keyspace, errors: readonly Error[]): Promise<void> {
  const problem = errors[0]?.message ?? '';
  await client.hset(keys.assetSyncState(), { digest: 'unknown', degraded: 'true', last_error: problem });
}

const readState = async (client: Redis, keys: Keyspace): Promise<SyncState> =>
  stateOf(await client.hgetall(keys.assetSyncState()));

const staleAt = ({ last_commit_sha: commit }: SyncState, fence: number): Published => ({
  outcome: 'stale',
  commit,
  fence,
});
