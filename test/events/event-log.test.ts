import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ReeveEvent, STREAM_NAMES, type StreamName } from '../../src/events/catalogue.ts';
import { type Cursor, compareIds, formatCursor, parseCursor } from '../../src/events/cursor.ts';
import type { EventLog, Page } from '../../src/events/event-log.ts';
import { startCluster } from '../support/cluster.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { anEventRoom, noStrayKeys, targetOf } from '../support/rooms.ts';

let redis: TestRedis;
let observer: Redis;
beforeAll(async () => {
  redis = await startTestRedis();
  observer = redis.client();
});
beforeEach(() => redis.flush());
afterEach(() => noStrayKeys(observer));
afterAll(() => redis.stop());

const aLog = async (context = {}) => (await anEventRoom(targetOf(redis.options), { context })).events;
const numbers = (events: readonly ReeveEvent[]) => events.map(({ payload }) => payload.n);

/** Appends numbered events, each to the stream named. */
async function fill(events: EventLog, streams: readonly StreamName[]): Promise<void> {
  for (const [n, stream] of streams.entries()) {
    if (stream === 'work') await events.append('task_started', { task_id: 'T', agent_id: 'ann', n });
    else if (stream === 'sync') await events.append('asset:added', { op: 'added', id: 'a', commit: 'c', n: String(n) });
    else if (stream === 'lock') await events.append('lock:expired', { lock: 'task:T', n });
    else if (stream === 'task') await events.append('task:approved', { task_id: 'T', n });
    else if (stream === 'approval') await events.append('approval:approved', { approval_id: 'A', task_id: 'T', n });
    else await events.append('redis:restarted', { restarts: n, why: 'test', n });
  }
}

describe('appending', () => {
  test('gives the event a place, a time and a source', async () => {
    const events = await aLog({ source: 'daemon-7' });
    const id = await events.append('lock:acquired', { lock: 'task:T', agent_id: 'ann', more: [1, { deep: true }] });
    const { events: read } = await events.latest({ streams: ['lock'] });

    expect(read).toEqual([
      {
        stream: 'lock',
        id,
        event: 'lock:acquired',
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
        source: 'daemon-7',
        payload: { lock: 'task:T', agent_id: 'ann', more: [1, { deep: true }] },
      },
    ]);
  });

  test('refuses an event without what it must carry', async () => {
    const events = await aLog();

    await expect(events.append('lock:acquired', { lock: 'task:T' } as never)).rejects.toThrow('agent_id');
    expect(await observer.dbsize()).toBe(0);
  });

  test('keeps the streams short', async () => {
    const events = await aLog({ keep: 100 });
    for (let n = 0; n < 400; n++) await events.append('lock:expired', { lock: 'x', n });

    expect(await observer.xlen(events.key('lock'))).toBeLessThan(300);
  });
});

describe('paging', () => {
  test('through any mixture of streams shows every event once, in order, whatever the size of a page', async () => {
    const events = await aLog();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...STREAM_NAMES), { minLength: 1, maxLength: 25 }),
        fc.integer({ min: 1, max: 10 }),
        async (streams, limit) => {
          await redis.flush();
          await fill(events, streams);
          const seen: ReeveEvent[] = [];
          let cursor: Cursor = {};
          let page: Page;
          do {
            page = await events.since(cursor, { limit });
            seen.push(...page.events);
            // As a caller does: through its text.
            cursor = parseCursor(formatCursor(page.cursor));
            expect(page.events.length).toBeLessThanOrEqual(limit);
            expect(page.gaps).toEqual([]);
          } while (page.more);

          expect(
            numbers(seen)
              .map(Number)
              .toSorted((a, b) => a - b),
          ).toEqual([...streams.keys()]);
          expect(seen.toSorted((a, b) => compareIds(a.id, b.id)).map(({ id }) => id)).toEqual(seen.map(({ id }) => id));
          expect((await events.since(cursor)).events).toEqual([]);
        },
      ),
      { numRuns: 25 },
    );
  });

  test('can be of some streams only, and one named twice is read once', async () => {
    const events = await aLog();
    await fill(events, ['lock', 'task', 'lock', 'system']);

    expect(numbers((await events.since({}, { streams: ['lock', 'lock'] })).events)).toEqual([0, 2]);
    expect(numbers((await events.latest({ streams: ['lock', 'lock'] })).events)).toEqual([0, 2]);
  });

  test('the latest come oldest first, and their cursor is after the last', async () => {
    const events = await aLog();
    await fill(events, ['lock', 'lock', 'lock', 'lock', 'lock']);
    const page = await events.latest({ limit: 2 });

    expect(numbers(page.events)).toEqual([3, 4]);
    expect((await events.since(page.cursor)).events).toEqual([]);
    await fill(events, ['work']);
    expect((await events.since(page.cursor)).events).toHaveLength(1);
  });

  test('an empty log has a cursor from which everything is new', async () => {
    const events = await aLog();
    const { cursor } = await events.latest();
    await fill(events, ['lock', 'sync']);

    expect((await events.since(parseCursor(formatCursor(cursor)))).events).toHaveLength(2);
  });

  test('from a place that was trimmed away says that something is missing, and of which stream', async () => {
    const events = await aLog();
    await fill(events, ['lock', 'lock', 'lock', 'lock']);
    await fill(events, ['task']);
    const { cursor } = await events.since({}, { limit: 2, streams: ['lock'] });
    await observer.xtrim(events.key('lock'), 'MAXLEN', 1);
    const page = await events.since({ ...(await events.latest()).cursor, ...cursor });

    expect(page.gaps).toEqual(['lock']);
    expect(numbers(page.events)).toEqual([3]);
  });

  test('from a place in a stream that was lost says so, too', async () => {
    const events = await aLog();
    await fill(events, ['lock']);
    const { cursor } = await events.latest();
    await redis.flush();

    expect((await events.since(cursor)).gaps).toEqual(['lock']);
  });

  test('reads what raw clients wrote, an id beyond all dates included', async () => {
    const events = await aLog();
    await observer.xadd(events.key('lock'), '18446744073709551614-7', 'hello', 'world');
    await observer.xadd(events.key('task'), '*', 'event', 'task:approved', 'payload', 'no json');
    const page = await events.since({});

    expect(page.events.map(({ event, payload }) => [event, payload])).toEqual([
      ['task:approved', { text: 'no json' }],
      ['unknown', {}],
    ]);
    expect((await events.since(parseCursor(formatCursor(page.cursor)))).events).toEqual([]);
  });
});

test('works in a cluster, where the streams live apart', async () => {
  await using cluster = await startCluster();
  const { events } = await anEventRoom(cluster.target, { space: { mode: 'cluster' } });
  await fill(events, [...STREAM_NAMES, ...STREAM_NAMES]);

  expect((await events.since({}, { limit: 100 })).events).toHaveLength(2 * STREAM_NAMES.length);
});
