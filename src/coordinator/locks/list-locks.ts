import { ReeveError } from '../../errors.ts';
import type { LockPage, Locks } from './locks.ts';

export interface Page {
  readonly agent?: string | undefined;
  readonly type?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/**
 * The locks that are held, those that end first first. A cursor is a place in time, and how many of that very moment were
 * shown: a lock that is renewed between two pages may come twice, none is left out.
 */
export async function listLocks(locks: Locks, { agent, type, limit, cursor = '' }: Page): Promise<LockPage> {
  const isFiltered = agent !== undefined || type !== undefined;
  if (!(isFiltered ? /^\d*$/ : /^(\d+(\.\d+)?_\d+)?$/).test(cursor)) throw new ReeveError('BAD_CURSOR', { cursor });
  if (isFiltered) return locks.list({ agent, type, limit, ...(cursor !== '' && { cursor }) });

  const { connection, keys } = locks.scripts;
  const [from = '', skip = ''] = cursor.split('_');
  const range = [keys.lockRegistry(), from || '-inf', '+inf', 'WITHSCORES', 'LIMIT', Number(skip), limit] as const;
  const flat = await connection.commands.zrangebyscore(...range);
  const found = flat.flatMap((key, at) => (at % 2 === 0 ? [{ key, score: flat[at + 1] as string }] : []));
  const views = await Promise.all(
    found.map(({ key }) => locks.scripts.lockOf(key)).flatMap((lock) => (lock ? [locks.inspect(lock)] : [])),
  );
  const last = found.at(-1)?.score;
  const shown = found.filter(({ score }) => score === last).length + (last === from ? Number(skip) : 0);
  return {
    locks: views.filter(({ holders }) => holders.some(({ state }) => state !== 'expired')),
    cursor: found.length === limit ? `${last}_${shown}` : undefined,
  };
}
