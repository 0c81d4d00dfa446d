import { releaseWrites } from './history-writes.ts';
import type { PublishOptions } from './publish.ts';
import { type Command, ownerOf, send, transact } from './transaction.ts';

const BATCH = 500;

/**
 * Moves the events of a large publish from the outbox to the stream, and notes the releases they tell of. They entered the
 * outbox in the publish itself, and each batch leaves it in the transaction that appends it: none is lost, none is told
 * twice, and Redis is never busy for long.
 */
export async function drainOutbox(options: PublishOptions): Promise<number> {
  const { connection, keys } = options;
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
      const events = batch.map((entry) => JSON.parse(entry) as Fields);
      const appends = events.flatMap((fields) => tellings(options, fields));
      const releases = await releaseWrites(connection.commands, keys, events);
      const moved = await transact(client, [...releases, ...appends, ['LTRIM', outbox, String(BATCH), '-1']]);
      if (!moved) continue;
      drained += batch.length;
      await tellAfterwards(options, events);
    }
  });
}

export type Fields = Readonly<Record<string, string>>;

/** The appends that tell of one change, in the form of the sync stream: to its namespace, and to everybody. */
export function tellings(options: PublishOptions, fields: Fields): Command[] {
  const { keys, common, connection } = options;
  const own = appendEvent(keys.assetSyncEvents(), options.keepEvents, fields);
  return common && connection.mode !== 'cluster' ? [own, toEverybody(options, fields)] : [own];
}

/** In a cluster the common stream lives elsewhere, and cannot be part of the transaction. */
export async function tellAfterwards(options: PublishOptions, events: readonly Fields[]): Promise<void> {
  const { common, connection } = options;
  if (!common || connection.mode !== 'cluster') return;
  await send(
    connection.commands,
    events.map((fields) => toEverybody(options, fields)),
  );
}

const toEverybody = ({ common, keepEvents }: PublishOptions, fields: Fields): Command =>
  appendEvent(common!.stream, keepEvents, { ...fields, namespace: common!.namespace });

const appendEvent = (stream: string, keep: number, fields: Fields): Command => [
  'XADD',
  stream,
  'MAXLEN',
  '~',
  String(keep),
  '*',
  ...Object.entries(fields).flat(),
];
