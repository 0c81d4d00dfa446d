import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ReeveEvent } from '../../src/events/catalogue.ts';
import { DURABLE, type RedisProcess, runRedis } from '../support/redis-process.ts';
import { type TestRooms, targetOf, theRooms } from '../support/rooms.ts';
import { until } from '../support/until.ts';
import { anOpenDoor, type Door } from './door.ts';

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
const rooms = () => theRooms(targetOf({ port: server.port }));

interface Heard {
  readonly id: string;
  readonly event: string;
  readonly data: ReeveEvent;
}

/** A browser's EventSource, as far as it matters: it comes back with the last id it saw, until it is closed. */
class Listener {
  readonly heard: Heard[] = [];
  breaks = 0;
  readonly #over = new AbortController();
  readonly #running: Promise<void>;

  constructor(door: Door, path: string, lastId = '') {
    this.#running = this.#run(door, path, lastId);
  }

  async #run(door: Door, path: string, lastId: string) {
    let last = lastId;
    while (!this.#over.signal.aborted) {
      const headers = { accept: 'text/event-stream', ...(last && { 'last-event-id': last }) };
      try {
        const response = await door.get(path, { headers, signal: this.#over.signal });
        for await (const block of blocksOf(response)) {
          const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)));
          if (!fields.data) continue;
          last = fields.id;
          this.heard.push({ id: fields.id, event: fields.event, data: JSON.parse(fields.data) as ReeveEvent });
        }
      } catch {
        // Cut off, or closed by us.
      }
      this.breaks += 1;
    }
  }

  get numbers(): number[] {
    return this.heard.map(({ data }) => Number(data.payload.n));
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }
}

async function* blocksOf(response: Response): AsyncIterable<string> {
  let rest = '';
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    yield* blocks;
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);
async function append({ events }: TestRooms, count: number, from = 0): Promise<void> {
  for (let n = from; n < from + count; n++) await events.append('lock:expired', { lock: 'x', n });
}

describe('following the events', () => {
  test('shows the latest first, then each new one as it happens', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    await append(open, 5);
    const listener = new Listener(door, '/api/v1/events?limit=3');
    await until('the latest are heard', () => listener.heard.length === 3);
    await append(open, 2, 5);
    await until('the new ones are heard', () => listener.heard.length === 5);
    await listener.close();

    expect(listener.numbers).toEqual([2, 3, 4, 5, 6]);
    expect(listener.heard[0]).toMatchObject({ event: 'lock:expired', data: { stream: 'lock' } });
  });

  test('can be of some streams only', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    const listener = new Listener(door, '/api/v1/events?stream=task');
    await append(open, 2);
    await open.events.append('task:approved', { task_id: 'T', n: 7 });
    await until('it is heard', () => listener.heard.length === 1);
    await listener.close();

    expect(listener.numbers).toEqual([7]);
  });

  test('goes on after any event that was heard, the first of the latest included', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    await append(open, 10);
    await open.events.append('task:approved', { task_id: 'T', n: 10 });
    await append(open, 3, 11);
    const first = new Listener(door, '/api/v1/events?limit=6');
    await until('the latest are heard', () => first.heard.length === 6);
    await first.close();
    for (const [at, { id }] of first.heard.entries()) {
      const second = new Listener(door, '/api/v1/events?limit=6', id);
      await until('the rest is heard', () => second.heard.length >= 5 - at);
      await append(open, 1, 100);
      await until('the next is heard', () => second.numbers.includes(100));
      await second.close();
      await observer.xtrim(open.events.key('lock'), 'MAXLEN', 1_000);
      expect(second.numbers.slice(0, 5 - at)).toEqual(first.numbers.slice(at + 1));
      expect(second.numbers.filter((n) => n < 8)).toEqual([]);
    }
  });

  test('loses and repeats nothing while Redis crashes and the listener comes back', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    const listener = new Listener(door, '/api/v1/events');
    let written = 0;
    for (let crash = 0; crash < 3; crash++) {
      await append(open, 50, written);
      written += 50;
      // The listener may or may not have heard them all when it happens.
      await server.crash();
      await server.start();
      await open.connection.whenReady(AbortSignal.timeout(20_000));
    }
    await append(open, 10, written);
    written += 10;
    await until('the last is heard', () => listener.numbers.includes(written - 1), 20_000);
    await listener.close();

    expect(listener.numbers).toEqual(upTo(written));
  });

  test('loses and repeats nothing when so much happens that a listener must catch up from the log', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    const listener = new Listener(door, '/api/v1/events');
    await until('it listens', async () => {
      await append(open, 1, 0);
      return listener.heard.length > 0;
    });
    const before = listener.heard.length;
    const pipeline = observer.pipeline();
    for (let n = 1; n <= 5_000; n++)
      pipeline.xadd(open.events.key('lock'), '*', 'event', 'lock:expired', 'payload', JSON.stringify({ n }));
    await pipeline.exec();
    await until('the last is heard', () => listener.numbers.at(-1) === 5_000, 20_000);
    await listener.close();

    expect(listener.numbers.slice(before).filter((n) => n > 0)).toEqual(upTo(5_001).slice(1));
  });

  test('from a bad cursor is refused before a stream begins', async () => {
    const door = await anOpenDoor(await rooms());
    const response = await door.get('/api/v1/events', {
      headers: { accept: 'text/event-stream', 'last-event-id': 'nonsense' },
    });

    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'BAD_CURSOR' });
  });

  test('is not confused by an event name with line breaks in it', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    await observer.xadd(
      open.events.key('lock'),
      '*',
      'event',
      'sly\ndata: {"payload":{"n":99}}\n\nid: x',
      'payload',
      '{"n":1}',
    );
    const listener = new Listener(door, '/api/v1/events');
    await until('it is heard', () => listener.heard.length === 1);
    await listener.close();

    expect(listener.numbers).toEqual([1]);
  });
});
