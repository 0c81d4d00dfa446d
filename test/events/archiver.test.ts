import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { archiveOnce, archiver } from '../../src/events/archiver.ts';
import type { Tail } from '../../src/events/tail.ts';
import { silentLog } from '../../src/log.ts';
import { openStore, type Store } from '../../src/store/database.ts';
import { aLog } from '../store/builders.ts';
import { runChild, sourceUrl } from '../support/child.ts';
import { fakeClock } from '../support/clock.ts';
import { DURABLE, type RedisProcess, runRedis } from '../support/redis-process.ts';
import { anEventRoom, targetOf } from '../support/rooms.ts';
import { until } from '../support/until.ts';

let server: RedisProcess;
let observer: Redis;
beforeAll(async () => {
  server = await runRedis(DURABLE);
  observer = new Redis(server.port);
  observer.on('error', () => {});
});
beforeEach(() => observer.flushall());
afterAll(async () => {
  observer.disconnect();
  await server[Symbol.asyncDispose]();
});

async function aFile(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'reeve-archive-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return join(dir, 'archive.db');
}

async function aStore(file: string): Promise<Store> {
  const store = await openStore({ url: `sqlite:${file}`, dataDir: '/nonexistent', clock: systemClock, log: silentLog });
  onTestFinished(() => store.stop());
  return store;
}

async function anArchive(file?: string) {
  const room = await anEventRoom(targetOf({ port: server.port }));
  const store = await aStore(file ?? (await aFile()));
  const fill = async (count: number, from = 0) => {
    for (let n = from; n < from + count; n++) await room.events.append('lock:expired', { lock: 'x', n });
  };
  const options = { events: room.events, store, clock: systemClock, log: silentLog };
  return { ...room, store, fill, options, archived: () => numbersIn(store) };
}

async function numbersIn(store: Store): Promise<number[]> {
  const rows = await store.db.selectFrom('events').select('payload').where('stream', '=', 'lock').execute();
  return rows.map(({ payload }) => Number(JSON.parse(payload).n)).toSorted((a, b) => a - b);
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('archiving', () => {
  test('copies what is new of every stream, and nothing twice', async () => {
    const { events, store, options, fill } = await anArchive();
    await fill(3);
    await events.append('task_started', { task_id: 'T', agent_id: 'ann', note: 'hello' });

    expect(await archiveOnce(options)).toBe(4);
    expect(await archiveOnce(options)).toBe(0);
    const rows = await store.db.selectFrom('events').selectAll().where('stream', '=', 'work').execute();
    expect(rows).toMatchObject([{ event: 'task_started', task_id: 'T', agent_id: 'ann', source: 'test' }]);
    expect(JSON.parse(rows[0]!.payload)).toMatchObject({ note: 'hello' });
  });

  test('copies more than one batch in one go', async () => {
    const { options, fill, archived } = await anArchive();
    await fill(1_203);

    expect(await archiveOnce(options)).toBe(1_203);
    expect(await archived()).toEqual(upTo(1_203));
  });

  test('by two daemons at once copies everything once', async () => {
    const file = await aFile();
    const [one, other] = [await anArchive(file), await anArchive(file)];
    await one.fill(700);
    await Promise.all([archiveOnce(one.options), archiveOnce(other.options)]);

    expect(await one.archived()).toEqual(upTo(700));
  });

  test('keeps what Redis has trimmed away or lost since', async () => {
    const { options, fill, archived } = await anArchive();
    await fill(5);
    await archiveOnce(options);
    await observer.flushall();
    await fill(5, 5);
    await archiveOnce(options);

    expect(await archived()).toEqual(upTo(10));
  });

  test('takes raw entries as they are', async () => {
    const { events, store, options } = await anArchive();
    await observer.xadd(events.key('lock'), '18446744073709551614-0', 'a', 'b');
    await archiveOnce(options);

    expect(await store.db.selectFrom('events').select(['id', 'event', 'at']).execute()).toEqual([
      { id: '18446744073709551614-0', event: 'unknown', at: 'unknown' },
    ]);
  });

  test('goes on after Redis crashed, from where it was', async () => {
    const { options, fill, archived, connection } = await anArchive();
    await fill(20);
    await archiveOnce(options);
    await server.crash();
    await until('the break is noticed', () => connection.commands.status !== 'ready');
    await expect(archiveOnce(options)).rejects.toThrow("isn't writeable");
    await server.start();
    await connection.whenReady(AbortSignal.timeout(20_000));
    await fill(20, 20);
    await archiveOnce(options);

    expect(await archived()).toEqual(upTo(40));
  });

  test('loses and repeats nothing when its process is killed in the middle, again and again', async () => {
    const { fill, options, archived, store } = await anArchive();
    const { file } = { file: store.describe() };
    await fill(3_000);
    for (let killing = 0; killing < 3; killing++) {
      const before = (await archived()).length;
      await using child = runChild(archivingCode(server.port, file));
      await child.next();
      await until('it has copied some more', async () => (await archived()).length > before || before === 3_000);
      await child.kill('SIGKILL');
    }
    await archiveOnce(options);

    expect(await archived()).toEqual(upTo(3_000));
  });

  test('as a service copies again and again, through failures, until it is stopped', async () => {
    const { options, fill, archived, connection } = await anArchive();
    const clock = fakeClock();
    const { log, lines } = await aLog();
    const { tail, tell } = aTail();
    const service = archiver({ ...options, tail, clock, log });
    onTestFinished(() => service.stop());
    await service.start();
    await fill(3);
    tell();
    await clock.asleep();
    await clock.advance(5_000);
    await until('the first are copied', async () => (await archived()).length === 3);
    await clock.asleep();
    tell();
    await server.crash();
    await until('the break is noticed', () => connection.commands.status !== 'ready');
    for (let attempt = 0; attempt < 3; attempt++) {
      await clock.asleep();
      await clock.advance(5_000);
    }
    await clock.asleep();
    await server.start();
    await connection.whenReady(AbortSignal.timeout(20_000));
    await fill(3, 3);
    await until('the rest is copied', async () => {
      await clock.advance(5_000);
      return (await archived()).length === 6;
    });
    await service.stop();
    expect(clock.sleepers).toBe(0);
    const told = lines().map(({ msg }) => msg);
    expect(told.filter((line) => line === 'archiving events failed, trying again')).toHaveLength(1);
    expect(told).toContain('archiving events works again');
  });
});

describe('as a service', () => {
  test('looks when something is heard, and else only now and then', async () => {
    const { options, fill, archived } = await anArchive();
    const clock = fakeClock();
    const { tail, tell } = aTail();
    const service = archiver({ ...options, tail, clock, log: silentLog });
    onTestFinished(() => service.stop());
    await service.start();
    await clock.asleep();
    await fill(3);
    await clock.advance(5_000);
    await clock.asleep();
    expect(await archived()).toHaveLength(0);
    tell();
    await clock.advance(5_000);
    await until('what was heard of is copied', async () => (await archived()).length === 3);
    await clock.asleep();
    await fill(2, 3);
    await clock.advance(31_000);
    await until('so is what nobody told', async () => (await archived()).length === 5);
  });
});

function aTail() {
  const listeners = new Set<() => void>();
  const tail = {
    listen: (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const tell = () => {
    for (const listener of listeners) listener();
  };
  return { tail: tail as Pick<Tail, 'listen'>, tell };
}

/** A process that archives, a few entries at a time, for as long as it lives. */
const archivingCode = (port: number, file: string) => `
  import { systemClock } from ${JSON.stringify(sourceUrl('clock.ts'))};
  import { archiveOnce } from ${JSON.stringify(sourceUrl('events/archiver.ts'))};
  import { EventLog } from ${JSON.stringify(sourceUrl('events/event-log.ts'))};
  import { silentLog as log } from ${JSON.stringify(sourceUrl('log.ts'))};
  import { connectRedis } from ${JSON.stringify(sourceUrl('redis/connection.ts'))};
  import { keyspace } from ${JSON.stringify(sourceUrl('redis/keys.ts'))};
  import { openStore } from ${JSON.stringify(sourceUrl('store/database.ts'))};
  const clock = systemClock;
  const target = { kind: 'standalone', address: 'redis', options: { host: '127.0.0.1', port: ${port} } };
  const connection = connectRedis({ target: () => target, clock, log, commandTimeoutMs: 5000, connectTimeoutMs: 5000, name: 'child' });
  await connection.start();
  const store = await openStore({ url: ${JSON.stringify(`sqlite:${file.replace(/^sqlite:/, '')}`)}, dataDir: '/nonexistent', clock, log });
  const events = new EventLog({ connection, keys: keyspace({ mode: 'standalone' }) });
  const whole = events.since.bind(events);
  events.since = (cursor, range) => whole(cursor, { ...range, limit: 20 });
  console.log('"ready"');
  for (;;) await archiveOnce({ events, store, clock, log });
`;
