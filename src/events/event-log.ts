import type { Connection, RedisClient } from '../redis/connection.ts';
import type { Keyspace } from '../redis/keys.ts';
import type { Scripts } from '../redis/script.ts';
import { EVENTS, type EventName, type Payload, type ReeveEvent, STREAM_NAMES, type StreamName } from './catalogue.ts';
import { type Cursor, compareIds } from './cursor.ts';
import { decodeEntry, encodeFields } from './entry.ts';
import { append } from './scripts.ts';

export interface EventLogOptions {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
}

export interface Page {
  readonly events: readonly ReeveEvent[];
  readonly cursor: Cursor;
  /** More is there already. */
  readonly more: boolean;
  /** Streams that were trimmed past the place asked for: something was missed, look at the state anew. */
  readonly gaps: readonly StreamName[];
}

/** Appending to and reading of the event streams. Changes of state append inside their own scripts instead. */
export class EventLog {
  readonly #connection: Connection;
  readonly #keys: Keyspace;
  readonly #scripts: Scripts;

  constructor({ connection, keys, scripts }: EventLogOptions) {
    this.#connection = connection;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  key(stream: StreamName): string {
    if (stream === 'work') return this.#keys.coordinationEvents();
    if (stream === 'sync') return this.#keys.assetSyncEvents();
    return stream === 'system' ? this.#keys.systemEvents() : this.#keys.events(stream);
  }

  async append<E extends EventName>(event: E, payload: Payload<E>): Promise<string> {
    const { stream, payload: schema } = EVENTS[event];
    const fields = Object.entries(encodeFields(stream, event, schema.parse(payload))).flat();
    return this.#scripts.run(append, { stream: this.key(stream) }, { fields });
  }

  /** What came after the cursor, oldest first; a stream that the cursor does not name is read from its beginning. */
  async since(cursor: Cursor, { streams = STREAM_NAMES, limit = 100 }: Range = {}): Promise<Page> {
    const read = await Promise.all(
      [...new Set(streams)].map((stream) => this.#after(stream, cursor[stream], limit + 1)),
    );
    const merged = read.flatMap(({ events }) => events).sort(inOrder);
    const events = merged.slice(0, limit);
    const gaps = read.filter(({ gap }) => gap).map(({ stream }) => stream);
    return { events, cursor: cursorAfter(cursor, events), more: merged.length > limit, gaps };
  }

  /** The newest ones, oldest of them first, and the place after them. */
  async latest({ streams: wanted = STREAM_NAMES, limit = 100 }: Range = {}): Promise<Page> {
    const streams = [...new Set(wanted)];
    const redis = this.#connection.commands;
    const read = await Promise.all(
      streams.map(async (stream) =>
        (await redis.xrevrange(this.key(stream), '+', '-', 'COUNT', limit)).map(([id, flat]) =>
          decodeEntry(stream, id, flat),
        ),
      ),
    );
    const newest = Object.fromEntries(
      streams.map((stream, index) => [stream, read[index]?.[0]?.id ?? '0-0']),
    ) as Cursor;
    const events = read.flat().sort(inOrder).slice(-limit);
    return { events, cursor: newest, more: false, gaps: [] };
  }

  async #after(stream: StreamName, id: string | undefined, count: number) {
    const redis = this.#connection.commands;
    const entries = await redis.xrange(this.key(stream), id ? `(${id}` : '-', '+', 'COUNT', count);
    const events = entries.map(([entryId, flat]) => decodeEntry(stream, entryId, flat));
    return { stream, events, gap: id !== undefined && id !== '0-0' && (await this.#trimmedPast(redis, stream, id)) };
  }

  /** Entries go only from the old end, so a gap shows as an oldest entry newer than the place asked for, or as none. */
  async #trimmedPast(redis: RedisClient, stream: StreamName, id: string): Promise<boolean> {
    const [oldest] = await redis.xrange(this.key(stream), '-', '+', 'COUNT', 1);
    return oldest === undefined || compareIds(oldest[0], id) > 0;
  }
}

interface Range {
  readonly streams?: readonly StreamName[] | undefined;
  readonly limit?: number | undefined;
}

const inOrder = (a: ReeveEvent, b: ReeveEvent): number => compareIds(a.id, b.id) || a.stream.localeCompare(b.stream);

const cursorAfter = (cursor: Cursor, events: readonly ReeveEvent[]): Cursor => ({
  ...cursor,
  ...Object.fromEntries(events.map(({ stream, id }) => [stream, id])),
});
