import type { ChainableCommander } from 'ioredis';
import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { ownerOf } from '../registry/transaction.ts';

export interface SyncLockOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  /** Who asks, for people. */
  readonly holder: string;
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

const LEASE_MS = 30_000;
const RENEW_MS = 10_000;

/**
 * Takes the lock by WATCH and MULTI, without a script, so that stores without scripting will do. It keeps two daemons
 * from doing the same work; what keeps them from publishing over each other is the fencing number.
 */
export async function takeSyncLock({ connection, keys, holder, clock, log }: SyncLockOptions): Promise<LockAnswer> {
  const key = keys.assetSyncLock();
  const since = new Date(clock.now()).toISOString();
  const token = `${holder} ${crypto.randomUUID()}`;
  const answer = await connection.exclusive(async (lent) => {
    const redis = await ownerOf(lent, key);
    await redis.watch(key);
    const found = await redis.hgetall(key);
    if (found.token !== undefined) {
      return { outcome: 'held', holder: found.holder ?? 'another daemon', since: found.since ?? 'just now' } as const;
    }
    const done = await redis
      .multi()
      .incr(keys.assetSyncFence())
      .hset(key, { holder, token, since })
      .pexpire(key, LEASE_MS)
      .exec();
    const fence = Number(done?.[0]?.[1] ?? Number.NaN);
    if (!Number.isFinite(fence)) return { outcome: 'held', holder: 'another daemon', since } as const;
    await redis.hset(key, { fence });
    return { outcome: 'taken', fence } as const;
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
