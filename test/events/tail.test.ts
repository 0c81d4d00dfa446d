import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { ReeveEvent } from '../../src/events/catalogue.ts';
import type { EventLog } from '../../src/events/event-log.ts';
import { createTail, type Tail } from '../../src/events/tail.ts';
import { silentLog } from '../../src/log.ts';
import type { Connection } from '../../src/redis/connection.ts';
import { fakeClock } from '../support/clock.ts';
import { startCluster } from '../support/cluster.ts';
import { DURABLE, type RedisProcess, runRedis } from '../support/redis-process.ts';
import { anEventRoom, type EventRoom, targetOf } from '../support/rooms.ts';
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

function tailOf({ connection, events }: EventRoom): Tail {
  const tail = createTail({ connection, events, clock: systemClock, log: silentLog });
  onTestFinished(() => tail.stop());
  return tail;
}

async function aTail(): Promise<EventRoom & { tail: Tail }> {
  const room = await anEventRoom(targetOf({ port: server.port }));
  const tail = tailOf(room);
  await tail.start();
  return { ...room, tail };
}

const numbersIn = (heard: readonly ReeveEvent[]) => heard.map(({ payload }) => Number(payload.n));

/** Appends the numbers from `from` to `to`, each again until it is known to be written exactly once. */
async function count(events: EventLog, connection: Connection, from: number, to: number): Promise<void> {
  for (let n = from; n < to; ) {
    try {
      await events.append('lock:expired', { lock: 'x', n });
      n += 1;
    } catch {
      await connection.whenReady(AbortSignal.timeout(20_000));
      const { events: last } = await events.latest({ streams: ['lock'], limit: 1 });
      if (Number(last[0]?.payload.n) === n) n += 1;
    }
  }
}

describe('the tail', () => {
  test('tells every listener of every new event, and none of what was there before', async () => {
    const room = await anEventRoom(targetOf({ port: server.port }));
    await room.events.append('lock:expired', { lock: 'old' });
    const tail = tailOf(room);
    await tail.start();
    const [one, other]: ReeveEvent[][] = [[], []];
    tail.listen((event) => one!.push(event));
    const stopListening = tail.listen((event) => other!.push(event));
    await room.events.append('lock:expired', { lock: 'a' });
    await room.events.append('task_started', { task_id: 'T', agent_id: 'ann' });
    await until('both are told', () => one!.length === 2 && other!.length === 2);
    stopListening();
    await room.events.append('redis:restarted', { restarts: 1, why: 'test' });
    await until('the one still listening is told', () => one!.length === 3);

    expect(one!.map(({ event }) => event).toSorted()).toEqual(['lock:expired', 'redis:restarted', 'task_started']);
    expect(other).toHaveLength(2);
  });

  test('goes on telling the others when a listener throws', async () => {
    const { tail, events } = await aTail();
    const heard: ReeveEvent[] = [];
    tail.listen(() => {
      throw new Error('not today');
    });
    tail.listen((event) => heard.push(event));
    await events.append('lock:expired', { lock: 'a' });

    await until('the other is told', () => heard.length > 0);
    expect(heard).toHaveLength(1);
  });

  test('loses and repeats nothing while Redis crashes again and again', async () => {
    const { tail, events, connection } = await aTail();
    const heard: ReeveEvent[] = [];
    tail.listen((event) => heard.push(event));
    const writing = count(events, connection, 0, 300);
    for (let crash = 1; crash <= 3; crash++) {
      await until('some more are heard', () => heard.length >= crash * 40);
      await server.crash();
      await server.start();
    }
    await writing;
    await until('the last is heard', () => numbersIn(heard).includes(299), 20_000);

    expect(numbersIn(heard)).toEqual(Array.from({ length: 300 }, (_, n) => n));
  });

  test('takes a new connection when a read is overdue, and loses and repeats nothing by it', async () => {
    const room = await anEventRoom(targetOf({ port: server.port }), { name: 'overdue' });
    const clock = fakeClock();
    const tail = createTail({ ...room, clock, log: silentLog });
    onTestFinished(() => tail.stop());
    await tail.start();
    const heard: ReeveEvent[] = [];
    tail.listen((event) => heard.push(event));
    const reader = async () => {
      const all = (await observer.client('LIST')) as string;
      return /^id=(\d+) .*name=overdue:blocking .*cmd=xread/m.exec(all)?.[1];
    };
    const first = await until('it reads', reader);
    await count(room.events, room.connection, 0, 3);
    await until('they are heard', () => heard.length === 3);
    await clock.asleep();
    server.hang();
    await clock.advance(10_000);
    server.goOn();
    await until('it reads over another connection', async () => {
      await clock.advance(100);
      const now = await reader();
      return now !== undefined && now !== first;
    });
    await count(room.events, room.connection, 3, 6);
    await until('the rest is heard', () => heard.length >= 6);

    expect(numbersIn(heard)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('stops at once, also while Redis is down', async () => {
    const { tail, connection } = await aTail();
    await server.crash();
    await until('the break is noticed', () => connection.commands.status !== 'ready');

    await tail.stop();

    expect(connection.commands.status).not.toBe('ready');
    await server.start();
  }, 4_000);

  test('can be started again, from then on', async () => {
    const { tail, events } = await aTail();
    await tail.stop();
    await events.append('lock:expired', { lock: 'missed' });
    const heard: ReeveEvent[] = [];
    tail.listen((event) => heard.push(event));
    await tail.start();
    await events.append('lock:expired', { lock: 'heard' });
    await until('it is heard', () => heard.length > 0);

    expect(heard.map(({ payload }) => payload.lock)).toEqual(['heard']);
  });
});

test('in a cluster every stream is followed on its own node', async () => {
  await using cluster = await startCluster();
  const room = await anEventRoom(cluster.target, { space: { mode: 'cluster' } });
  const tail = tailOf(room);
  await tail.start();
  const heard = new Set<string>();
  tail.listen(({ event }) => heard.add(event));
  await room.events.append('lock:expired', { lock: 'a' });
  await room.events.append('task_started', { task_id: 'T', agent_id: 'ann' });
  await room.events.append('asset:added', { op: 'added', id: 'a', commit: 'c' });
  await room.events.append('task:approved', { task_id: 'T' });

  await until('all are heard', () => heard.size >= 4);
  expect([...heard].toSorted()).toEqual(['asset:added', 'lock:expired', 'task:approved', 'task_started']);
  await tail.stop();
  await room.connection.stop();
});
