import type { PublishOptions } from './publish.ts';
import { ownerOf, transact } from './transaction.ts';

const BATCH = 500;

/**
 * Moves the events of a large publish from the outbox to the stream. They entered the outbox in the publish itself, and each
 * batch leaves it in the transaction that appends it: none is lost, none is told twice, and Redis is never busy for long.
 */
export async function drainOutbox({ connection, keys, keepEvents }: PublishOptions): Promise<number> {
  const outbox = keys.assetSyncOutbox();
  if ((await connection.commands.llen(outbox)) === 0) return 0;
  return connection.exclusive(async (lent) => {
    const client = await ownerOf(lent, outbox);
    let drained = 0;
    for (;;) {
      await client.watch(outbox);
      const batch = await client.lrange(outbox, 0, BATCH - 1);
      if (batch.length === 0) {
        await client.unwatch();
        return drained;
      }
      const appends = batch.map((entry) => appendEvent(keys.assetSyncEvents(), keepEvents, JSON.parse(entry)));
      const moved = await transact(client, [...appends, ['LTRIM', outbox, String(BATCH), '-1']]);
      if (moved) drained += batch.length;
    }
  });
}

/** XADD of one change, in the form of the sync stream. */
export const appendEvent = (stream: string, keep: number, fields: Readonly<Record<string, string>>) =>
  ['XADD', stream, 'MAXLEN', '~', String(keep), '*', ...Object.entries(fields).flat()] as const;
