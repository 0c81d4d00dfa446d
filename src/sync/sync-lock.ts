import type { ChainableCommander } from 'ioredis';
import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import { redisFailure } from '../redis/failure.ts';
import type { Keyspace } from '../redis/keys.ts';
import { ownerOf } from '../registry/transaction.ts';

export interface SyncLockOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  /** Who asks, for people. */
  readonly holder: string;
  /** Who asks, for Redis: the same for all syncs of one runner, which never runs two at a time, and nobody else's. */
  readonly token: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The right to sync one namespace. The number rises with each grant; a publish with an older one is refused. */
export interface SyncLock extends AsyncDisposable {
  readonly fence: number;
  /** Aborted when the lock is lost: the work under it must stop. */
  readonly lost: AbortSignal;
}

export type LockAnswer =
  | { readonly outcome: 'taken'; readonly lock: SyncLock }
  | { readonly outcome: 'held'; readonly holder: string; readonly since: string };

/** How long a lock outlives a daemon that died under it. */
export const LEASE_MS = 30_000;
const RENEW_MS = 10_000;

/**
 * Takes the lock by WATCH and MULTI, without a script, so that stores without scripting will do. It keeps two daemons
 * from doing the same work; what keeps them from publishing over each other is the fencing number.
 *
 * A lock with our own token is left over from a reply that was lost, of a grant or of a release: it is taken again.
 */
export async function takeSyncLock(options: SyncLockOptions): Promise<LockAnswer> {
  const { connection, keys, token, clock, log } = options;
  const key = keys.assetSyncLock();
  const answer = await takeOnce(options).catch((error: unknown) => {
    if (redisFailure(error, connection.address)?.code !== 'REDIS_REPLY_UNKNOWN') throw error;
    return takeOnce(options);
  });
  if (answer.outcome === 'held') return answer;

  const over = new AbortController();
  const lost = new AbortController();
  /** Does something to the lock only if it is still ours. */
  const ifOurs = (change: (multi: ChainableCommander) => ChainableCommander) =>
    connection.exclusive(async (lent) => {
      const redis = await ownerOf(lent, key);
      await redis.watch(key);
      if ((await redis.hget(key, 'token')) !== token) return false;
      return (await change(redis.multi()).exec()) !== null;
    });
  const renewing = (async () => {
    for (;;) {
      await clock.sleep(RENEW_MS, over.signal);
      if (over.signal.aborted) return;
      // A Redis that does not answer is met by the work itself; the lease outlasts two failed renewals.
      const isOurs = await ifOurs((multi) => multi.pexpire(key, LEASE_MS)).catch(() => true);
      if (!isOurs) return lost.abort(new Error('the sync lock was lost'));
    }
  })();
  return {
    outcome: 'taken',
    lock: {
      fence: answer.fence,
      lost: lost.signal,
      async [Symbol.asyncDispose]() {
        over.abort();
        await renewing;
        await ifOurs((multi) => multi.del(key)).catch((error: unknown) =>
          log.debug('the sync lock was left to expire', { problem: reason(error) }),
        );
      },
    },
  };
}

type Taken = { readonly outcome: 'taken'; readonly fence: number } | Extract<LockAnswer, { outcome: 'held' }>;

function takeOnce({ connection, keys, holder, token, clock }: SyncLockOptions): Promise<Taken> {
  const [lock, counter] = [keys.assetSyncLock(), keys.assetSyncFence()];
  const since = new Date(clock.now()).toISOString();
  return connection.exclusive(async (lent): Promise<Taken> => {
    const redis = await ownerOf(lent, lock);
    await redis.watch(lock, counter);
    const found = await redis.hgetall(lock);
    if (found.token !== undefined && found.token !== token) {
      return { outcome: 'held', holder: found.holder ?? 'another daemon', since: found.since ?? 'just now' };
    }
    const fence = Number((await redis.get(counter)) ?? 0) + 1;
    const done = await redis
      .multi()
      .set(counter, fence)
      .hset(lock, { holder, token, since, fence })
      .pexpire(lock, LEASE_MS)
      .exec();
    if (done === null) return { outcome: 'held', holder: 'another daemon', since };
    for (const [error] of done) if (error) throw error;
    return { outcome: 'taken', fence };
  });
}
