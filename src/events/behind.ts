import { ReeveError } from '../errors.ts';
import type { Store } from '../store/database.ts';
import type { BacklogOptions } from './backlog.ts';
import { STREAM_NAMES } from './catalogue.ts';
import { type StreamBounds, slowestOf } from './trimmer.ts';

/** From half of the most on there is something wrong with a reader, and still time to mend it. */
const ALARM = 0.5;

/** How long the streams are, and an error with the name of who is behind when one of them fills up. */
export async function streamHealth(
  options: BacklogOptions & StreamBounds & { readonly store: Store },
): Promise<Readonly<Record<string, number>>> {
  const { connection, events, store, most } = options;
  const lengths = await Promise.all(
    STREAM_NAMES.map(async (stream) => [stream, await connection.commands.xlen(events.key(stream))] as const),
  );
  const full = lengths.find(([, length]) => length >= most * ALARM);
  if (full) {
    const [stream, length] = full;
    const { group } = await slowestOf(options, stream, store);
    throw new ReeveError('EVENTS_BEHIND', { stream, length, most, reader: group, key: events.key(stream) });
  }
  return { entries: lengths.reduce((sum, [, length]) => sum + length, 0) };
}
