import { z } from 'zod';
import { type ReeveEvent, STREAM_NAMES, type StreamName } from '../events/catalogue.ts';
import { advance, type Cursor, compareIds, formatCursor, parseCursor, placeBefore } from '../events/cursor.ts';
import { type Context, defineOperation, type Followed, type Operation } from './operation.ts';

const event = z
  .object({
    stream: z.enum(STREAM_NAMES),
    id: z.string().describe('Id of the entry in its Redis stream'),
    event: z.string(),
    at: z.string(),
    source: z.string(),
    payload: z.looseObject({}),
  })
  .meta({ id: 'Event' });

const input = z.object({
  stream: z.array(z.enum(STREAM_NAMES)).min(1).optional().describe('Only these streams'),
  since: z.string().optional().describe('A cursor: only what came after it. Without one: the newest'),
  limit: z.int().min(1).max(1000).default(20).describe('At most this many'),
});
type Input = z.output<typeof input>;

export const eventOperations: readonly Operation[] = [
  defineOperation({
    name: 'events.list',
    summary: 'Show what happened',
    description:
      'Pages through the event streams. With `Accept: text/event-stream` it goes on with new events as they happen; Last-Event-ID takes up after a break.',
    access: 'read',
    input,
    output: z.object({
      items: z.array(event),
      next_cursor: z.string().describe('Pass it as `since` to get what comes after'),
      more: z.boolean().describe('More is there already'),
      gaps: z.array(z.enum(STREAM_NAMES)).describe('Streams trimmed past the cursor: something was missed'),
    }),
    errors: ['BAD_CURSOR'],
    http: { method: 'GET', path: '/events' },
    cli: {
      words: 'events',
      columns: ['at', 'event', 'source', 'payload'],
      view: 'events',
      examples: ['reeve events --limit 50', 'reeve events --follow --stream lock,task'],
    },
    run: async ({ rooms }, { stream: streams, since, limit }) => {
      const page = since
        ? await rooms.events.since(parseCursor(since), { streams, limit })
        : await rooms.events.latest({ streams, limit });
      return {
        items: page.events,
        next_cursor: formatCursor(page.cursor),
        more: page.more,
        gaps: page.gaps,
      };
    },
    // A bad cursor is refused here, before a stream begins that could only break off.
    follow: (context, input) => followEvents(context, input, input.since ? parseCursor(input.since) : undefined),
  }),
];

/** Beyond this a listener is too slow to be fed from memory and catches up from the log. */
const MOST_WAITING = 1_000;
const BATCH = 500;

/** Past events first, then new ones as they come; between them none is lost or shown twice. */
async function* followEvents(
  { rooms, signal }: Context,
  { stream: streams, limit }: Input,
  since: Cursor | undefined,
): AsyncIterable<Followed> {
  const wanted = new Set<StreamName>(streams ?? STREAM_NAMES);
  const waiting: ReeveEvent[] = [];
  let behind = true;
  let wake = () => {};
  const stopListening = rooms.tail.listen((one) => {
    if (behind || !wanted.has(one.stream)) return;
    waiting.push(one);
    if (waiting.length > MOST_WAITING) behind = true;
    wake();
  });
  signal.addEventListener('abort', () => wake(), { once: true });
  let place = since ?? {};
  const tell = (one: ReeveEvent): Followed => {
    place = advance(place, one);
    return { cursor: formatCursor(place), kind: one.event, item: one };
  };
  try {
    if (!since) {
      const { events, cursor } = await rooms.events.latest({ streams, limit });
      // The place is whole from the first event on: who is cut off among these goes on with the rest of them.
      place = { ...cursor, ...beforeFirst(events) };
      for (const one of events) yield tell(one);
    }
    while (!signal.aborted) {
      if (behind) {
        // Listening begins before the read, so that nothing falls between the two.
        behind = false;
        waiting.length = 0;
        const page = await rooms.events.since(place, { streams, limit: BATCH });
        for (const one of page.events) yield tell(one);
        // Not simply set: while these were sent, so many new ones may have come that the listener gave up again.
        behind ||= page.more;
        continue;
      }
      const next = waiting.shift();
      if (next && compareIds(next.id, place[next.stream] ?? '0-0') > 0) yield tell(next);
      if (!next) {
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (waiting.length > 0 || signal.aborted) resolve();
        });
      }
    }
  } finally {
    stopListening();
  }
}

const beforeFirst = (events: readonly ReeveEvent[]): Cursor =>
  Object.fromEntries(events.toReversed().map(({ stream, id }) => [stream, placeBefore(id)]));
