import { backOff, type Clock, withDeadline } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Logger } from '../log.ts';
import { type Connection, hangUp, type RedisClient } from '../redis/connection.ts';
import { type Service, service } from '../service.ts';
import { type ReeveEvent, STREAM_NAMES, type StreamName } from './catalogue.ts';
import { decodeEntry } from './entry.ts';
import type { EventLog } from './event-log.ts';

export type Listener = (event: ReeveEvent) => void;

/** Follows every stream with one blocking read and hands each event to whoever listens: doors, metrics, waiting calls. */
export interface Tail extends Service {
  /** Events from now on. Returns how to stop listening. */
  listen(listener: Listener): () => void;
}

export interface TailOptions {
  readonly connection: Connection;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly log: Logger;
}

const BLOCK_MS = 5_000;
/** A read that is not answered long after it should have been is waiting for a host that vanished. */
const OVERDUE_MS = 10_000;

export function createTail({ connection, events, clock, log }: TailOptions): Tail {
  const listeners = new Set<Listener>();
  const tell = (event: ReeveEvent) => {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        log.error('an event listener failed', { event: event.event, problem: String(error) });
      }
    }
  };
  const life = service('event tail', async (signal) => {
    const { cursor } = await events.latest({ limit: 1 });
    const places = new Map(STREAM_NAMES.map((stream) => [stream, cursor[stream] ?? '0-0']));
    const followers = slotGroups(connection).map((streams) => follow(streams, places, signal));
    return async () => {
      await Promise.all(followers);
    };
  });

  async function follow(streams: readonly StreamName[], places: Map<StreamName, string>, signal: AbortSignal) {
    let failures = 0;
    while (!signal.aborted) {
      let client: RedisClient | undefined;
      try {
        client = await connection.blocking(signal);
        const taken = client;
        // A read that blocks notices nothing else. The listener goes with its client, or each break would leave one behind.
        const over = () => hangUp(taken);
        signal.addEventListener('abort', over, { once: true });
        taken.once('end', () => signal.removeEventListener('abort', over));
        while (!signal.aborted) {
          await readOnce(client, streams, places);
          failures = 0;
        }
      } catch (error) {
        if (signal.aborted) break;
        if (failures === 0) log.warn('following the events failed, trying again', { problem: String(error) });
        await clock.sleep(backOff(failures++, 100, 5_000), signal);
      } finally {
        if (client) hangUp(client);
      }
    }
  }

  async function readOnce(client: RedisClient, streams: readonly StreamName[], places: Map<StreamName, string>) {
    const keys = streams.map((stream) => events.key(stream));
    const ids = streams.map((stream) => places.get(stream) ?? '0-0');
    const reading = client.xread('COUNT', 500, 'BLOCK', BLOCK_MS, 'STREAMS', ...keys, ...ids);
    const { address } = connection;
    const overdue = () => new ReeveError('REDIS_UNAVAILABLE', { address, problem: 'no answer' });
    const read = await withDeadline(clock, OVERDUE_MS, reading, overdue);
    for (const [key, entries] of read ?? []) {
      const stream = streams[keys.indexOf(key)] as StreamName;
      for (const [id, flat] of entries) {
        places.set(stream, id);
        tell(decodeEntry(stream, id, flat));
      }
    }
  }

  return {
    ...life,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** One read can block on many streams only where they live together: on one server all of them, in a cluster each alone. */
function slotGroups(connection: Connection): readonly (readonly StreamName[])[] {
  return connection.mode === 'cluster' ? STREAM_NAMES.map((stream) => [stream]) : [STREAM_NAMES];
}
