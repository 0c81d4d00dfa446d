import { actorText } from '../actor.ts';
import type { Connection } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import { type Hold, parseHolds } from './holds.ts';
import { type Command, ownerOf, send, transact } from './transaction.ts';

export interface ReleaseOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  /** Which daemon this is, for the audit. */
  readonly service: string;
}

/** Lets a held change through at the next sync. Undefined: there is no such hold. The audit row is part of the change. */
export function releaseHold(
  { connection, keys, service }: ReleaseOptions,
  id: string,
  by: string,
  reason: string,
): Promise<Hold | undefined> {
  const key = keys.assetSyncHolds();
  return connection.exclusive(async (lent) => {
    const client = await ownerOf(lent, key);
    for (;;) {
      await client.watch(key);
      const hold = parseHolds(await client.hgetall(key)).get(id);
      if (!hold || hold.released) return hold;
      const [seconds = 0, micros = 0] = await client.time();
      const released: Hold = { ...hold, released: { by, at: Number(seconds), reason } };
      const row = auditRow(keys.auditOutbox(), { id, reason, service, at: isoMicros(seconds, micros) });
      // In a cluster the audit lives elsewhere and cannot be part of the transaction: better a row too many than one too few.
      const isApart = connection.mode === 'cluster';
      if (isApart) await send(connection.commands, [row]);
      const change: Command = ['HSET', key, id, JSON.stringify(released)];
      if (await transact(client, isApart ? [change] : [change, row])) return released;
    }
  });
}

/** In the form of the scripts' audit rows. */
const auditRow = (
  outbox: string,
  {
    id,
    reason,
    service,
    at,
  }: { readonly id: string; readonly reason: string; readonly service: string; readonly at: string },
): Command => [
  'XADD',
  outbox,
  '*',
  ...['at', at, 'action', 'release', 'subject', `hold:${id}`, 'from', 'held', 'to', 'released'],
  ...['service', service, 'actor', actorText(), 'reason', reason],
];

const isoMicros = (seconds: number, micros: number): string =>
  `${new Date(Number(seconds) * 1000).toISOString().slice(0, -4)}${String(micros).padStart(6, '0')}Z`;
