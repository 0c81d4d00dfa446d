import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { archiveOnce } from '../../src/events/archiver.ts';
import { streamHealth } from '../../src/events/behind.ts';
import { GroupConsumer, type GroupName } from '../../src/events/group.ts';
import { trimOnce } from '../../src/events/trimmer.ts';
import { silentLog } from '../../src/log.ts';
import type { Store } from '../../src/store/database.ts';
import { aDirectory, aLog, aStore } from '../store/builders.ts';
import { type PostgresServer, postgresForTests } from '../support/postgres.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';

let redis: RedisRoom;
beforeAll(async () => {
  redis = await aRedisRoom();
});
afterEach(() => redis.reset());
afterAll(() => redis[Symbol.asyncDispose]());

const postgres = await postgresForTests();
describe('on SQLite', () => {
  conforms(async () => aStore({ url: `sqlite:${join(await aDirectory(), 'test.db')}` }));
});
describe.skipIf(postgres.missing !== undefined)('on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await postgres.start();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  conforms(async () => aStore({ url: await server.createDatabase() }));
});

const DAY_MS = 86_400_000;

function conforms(open: () => Promise<Store>) {
  let store: Store;
  beforeEach(async () => {
    store = await open();
  });
  const fill = async (count: number) => {
    for (let n = 0; n < count; n++) await redis.events.append('lock:expired', { lock: 'x', n });
  };
  const length = () => redis.client.xlen(redis.keys.events('lock'));
  const options = () => {
    const { connection, events } = redis;
    return { connection, events, store, clock: systemClock, log: silentLog, keep: 10, most: 1_000 };
  };
  const aGroup = (group: GroupName) => {
    const { connection, events } = redis;
    return new GroupConsumer({ connection, events, stream: 'lock', group, consumer: 'ann' });
  };

  test('nothing goes before it is archived, then all but the newest', async () => {
    await fill(30);
    expect(await trimOnce(options())).toBe(0);
    await archiveOnce(options());
    expect(await trimOnce(options())).toBe(19);
    expect(await length()).toBe(11);
    expect(await trimOnce(options())).toBe(0);
  });

  test('nothing goes that a group has not read, or read and not acknowledged', async () => {
    const slow = aGroup('webhook-dispatcher');
    await slow.ensure();
    await fill(30);
    await archiveOnce(options());
    await trimOnce(options());
    expect(await length()).toBe(30);

    const taken = await slow.take(20);
    await trimOnce(options());
    expect(await length()).toBe(30);

    await slow.acknowledge(taken.slice(0, 5));
    await trimOnce(options());
    expect(await length()).toBe(25);

    await slow.acknowledge(taken.slice(5));
    await trimOnce(options());
    expect(await length()).toBe(11);
    expect((await slow.take(100)).map(({ payload }) => payload.n)).toEqual([20, 21, 22, 23, 24, 25, 26, 27, 28, 29]);
  });

  test('what is older than a week goes, however little there is', async () => {
    await fill(5);
    await archiveOnce(options());
    expect(await trimOnce(options())).toBe(0);
    const later = { ...systemClock, now: () => systemClock.now() + 8 * DAY_MS };
    expect(await trimOnce({ ...options(), clock: later })).toBe(5);
  });

  test('a group that nobody reads for is an alarm that names it, and a full stream is told of', async () => {
    await aGroup('analytics-pipeline').ensure();
    await fill(60);
    await archiveOnce(options());
    expect(await streamHealth(options())).toEqual({ entries: 60 });
    await expect(streamHealth({ ...options(), most: 100 })).rejects.toMatchObject({
      code: 'EVENTS_BEHIND',
      message: expect.stringContaining('analytics-pipeline does not read on'),
    });
    const { log, lines } = await aLog();
    await trimOnce({ ...options(), log, most: 60 });
    expect(lines()).toEqual([
      expect.objectContaining({
        msg: 'a stream is full: its oldest events are dropped unread',
        stream: 'lock',
        waiting_for: 'analytics-pipeline',
      }),
    ]);
  });
}
