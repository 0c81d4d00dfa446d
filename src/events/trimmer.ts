import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { Lookout } from '../lookout.ts';
import { group, type Service, service } from '../service.ts';
import type { Store } from '../store/database.ts';
import { type BacklogOptions, placeAfter, type Reader, readersOf, slowest } from './backlog.ts';
import { STREAM_NAMES, type StreamName } from './catalogue.ts';
import { compareIds } from './cursor.ts';
import type { Tail } from './tail.ts';

export interface StreamBounds {
  /** How many entries a stream is trimmed to, once they were read. */
  readonly keep: number;
  /** How many it may hold at most, read or not. Every append sees to that. */
  readonly most: number;
}

export interface TrimmerOptions extends BacklogOptions, StreamBounds {
  readonly store: Store;
  readonly tail: Pick<Tail, 'listen'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const PERIOD_MS = 2_000;
const QUIET_MS = 3_600_000;
const OLDEST_MS = 7 * 24 * 3_600_000;

/**
 * Keeps the streams short. Appends themselves trim only at a length that is never reached while everybody reads; down to the usual
 * length only this service trims, and never past what a group has not finished or the archive does not have.
 */
export function trimmer(options: TrimmerOptions): Service {
  const { clock, tail, log, keep } = options;
  let heard = 0;
  let isFailing = false;
  const lookout = new Lookout('event trimmer', {
    clock,
    periodMs: PERIOD_MS,
    quietMs: QUIET_MS,
    look: async () => {
      heard = 0;
      const trimmed = await trimOnce(options);
      if (trimmed > 0) log.debug('events trimmed', { trimmed });
      isFailing = false;
    },
    onError: (error) => {
      if (!isFailing) log.warn('trimming events failed, trying again', { problem: reason(error) });
      isFailing = true;
    },
  });
  const ear = service('trimmer’s ear', async () =>
    tail.listen(() => {
      heard += 1;
      if (heard >= keep / 10) lookout.told();
    }),
  );
  return group('event trimmer', [ear, lookout.service]);
}

/** Takes away what is beyond the usual length or a week old, as far as everybody has it; returns how much. */
export async function trimOnce(options: Omit<TrimmerOptions, 'tail'>): Promise<number> {
  let trimmed = 0;
  for (const stream of STREAM_NAMES) trimmed += await trimStream(options, stream);
  return trimmed;
}

async function trimStream(options: Omit<TrimmerOptions, 'tail'>, stream: StreamName): Promise<number> {
  const { connection, events, store, most, log } = options;
  const key = events.key(stream);
  const length = await connection.commands.xlen(key);
  if (length === 0) return 0;
  const wanted = await placeWanted(options, stream, length);
  const reader = await slowestOf(options, stream, store);
  if (length >= most * FULL) {
    log.error('a stream is full: its oldest events are dropped unread', { stream, length, waiting_for: reader.group });
  }
  const place = compareIds(reader.needs, wanted) < 0 ? reader.needs : wanted;
  return connection.commands.xtrim(key, 'MINID', place);
}
/** Appends trim whole nodes of a stream and so leave a little more than the most. */
const FULL = 0.98;

/** Where the stream would begin if nobody were behind: the newest so many, and none older than a week. */
async function placeWanted(
  { store, keep, clock }: Omit<TrimmerOptions, 'tail'>,
  stream: StreamName,
  length: number,
): Promise<string> {
  const old = `${clock.now() - OLDEST_MS}-0`;
  if (length <= keep) return old;
  // The archive knows the ids without their contents. As text they sort as numbers but for those of one millisecond.
  const beyond = await store.db
    .selectFrom('events')
    .select('id')
    .where('stream', '=', stream)
    .orderBy('id', 'desc')
    .offset(keep)
    .limit(1)
    .executeTakeFirst();
  return beyond && compareIds(beyond.id, old) > 0 ? beyond.id : old;
}

/** Who is furthest behind: a group, or the archive. */
export async function slowestOf(options: BacklogOptions, stream: StreamName, store: Store): Promise<Reader> {
  const archived = await store.db
    .selectFrom('event_cursors')
    .select('id')
    .where('stream', '=', stream)
    .executeTakeFirst();
  const archive = { group: 'the archive', needs: placeAfter(archived?.id ?? '0-0') };
  return slowest([...(await readersOf(options, stream)), archive]) ?? archive;
}
