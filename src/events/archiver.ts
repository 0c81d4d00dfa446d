import type { Clock } from '../clock.ts';
import { reason } from '../errors.ts';
import type { Logger } from '../log.ts';
import { Lookout } from '../lookout.ts';
import { group, type Service, service } from '../service.ts';
import type { Store } from '../store/database.ts';
import { type ReeveEvent, STREAM_NAMES, type StreamName } from './catalogue.ts';
import type { EventLog } from './event-log.ts';
import type { Tail } from './tail.ts';

export interface ArchiverOptions {
  readonly events: EventLog;
  /** Says that there is something new; without a word it is looked for now and then. */
  readonly tail: Pick<Tail, 'listen'>;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

const PERIOD_MS = 2_000;
const QUIET_MS = 30_000;
const BATCH = 500;

/** Copies the streams to the store, so that history survives the trimming of a stream and the loss of Redis. */
export function archiver(options: ArchiverOptions): Service {
  const { clock, tail } = options;
  let isFailing = false;
  const lookout = new Lookout('event archiver', {
    clock,
    periodMs: PERIOD_MS,
    quietMs: QUIET_MS,
    look: async (signal) => {
      const copied = await archiveOnce(options, signal);
      if (copied > 0) options.log.debug('events archived', { copied });
      if (isFailing) options.log.info('archiving events works again');
      isFailing = false;
    },
    onError: (error) => {
      // Once, not with every attempt while it lasts.
      if (!isFailing) options.log.warn('archiving events failed, trying again', { problem: reason(error) });
      isFailing = true;
    },
  });
  const ear = service('event archiver’s ear', async () => tail.listen(() => lookout.told()));
  return group('event archiver', [ear, lookout.service]);
}

/** Copies what is new and returns how many. Rows and the place reached commit together: nothing twice, nothing left out. */
export async function archiveOnce(
  { events, store, log }: Omit<ArchiverOptions, 'tail'>,
  signal?: AbortSignal,
): Promise<number> {
  let copied = 0;
  for (const stream of STREAM_NAMES) {
    for (let more = true; more && !signal?.aborted; ) {
      const page = await events.since(await placeOf(store, stream), { streams: [stream], limit: BATCH });
      if (page.gaps.length > 0) log.warn('a stream was trimmed before its events were archived', { stream });
      await save(store, stream, page.events);
      copied += page.events.length;
      more = page.more;
    }
  }
  return copied;
}

async function placeOf(store: Store, stream: StreamName) {
  const row = await store.db.selectFrom('event_cursors').select('id').where('stream', '=', stream).executeTakeFirst();
  return row ? { [stream]: row.id } : {};
}

async function save(store: Store, stream: StreamName, events: readonly ReeveEvent[]): Promise<void> {
  const last = events.at(-1);
  if (!last) return;
  const rows = events.map(({ id, event, at, source, payload }) => ({
    stream,
    id,
    event,
    at,
    source,
    task_id: textOr(payload.task_id),
    agent_id: textOr(payload.agent_id),
    payload: JSON.stringify(payload),
  }));
  await store.db.transaction().execute(async (tx) => {
    // Two daemons may copy the same entries; the second finds them there.
    await tx
      .insertInto('events')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    await tx
      .insertInto('event_cursors')
      .values({ stream, id: last.id })
      .onConflict((conflict) => conflict.column('stream').doUpdateSet({ id: last.id }))
      .execute();
  });
}

const textOr = (value: unknown): string | null => (typeof value === 'string' ? value : null);
