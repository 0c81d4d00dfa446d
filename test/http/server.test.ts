import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/clock.ts';
import { isLoopbackHost } from '../../src/http/auth.ts';
import { operations } from '../../src/operations/index.ts';
import { defineOperation } from '../../src/operations/operation.ts';
import { failureOf } from '../support/failure.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { targetOf, theRooms } from '../support/rooms.ts';
import { until } from '../support/until.ts';
import { aDoor, anOpenDoor, echo } from './door.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
beforeEach(() => redis.flush());
afterAll(() => redis.stop());
const rooms = () => theRooms(targetOf(redis.options));
const withEcho = { operations: [...operations, echo] };

/** What fetch does not let one set: Host, and a connection kept open. */
async function send(url: string, path: string, headers: Record<string, string> = {}, agent?: Agent): Promise<Answer> {
  const asking = request(new URL(path, url), { headers, ...(agent && { agent }) }).end();
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}
interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

describe('a refusal is a problem that names what to do', () => {
  test.each([
    [400, 'INVALID_INPUT', '/api/v1/events?limit=0', {}],
    [400, 'INVALID_INPUT', '/api/v1/events?limti=5', {}],
    [400, 'INVALID_INPUT', '/api/v1/events?stream=nowhere', {}],
    [400, 'BAD_CURSOR', '/api/v1/events?since=yesterday', {}],
    [
      400,
      'USAGE',
      '/api/v1/echo/x',
      { method: 'POST', body: '{broken', headers: { 'content-type': 'application/json' } },
    ],
    [
      400,
      'INVALID_INPUT',
      '/api/v1/echo/x',
      { method: 'POST', body: '{"times":9}', headers: { 'content-type': 'application/json' } },
    ],
    [400, 'USAGE', '/api/v1/echo/%zz', { method: 'POST' }],
    [403, 'DENIED', '/api/v1/status', { headers: { origin: 'https://evil.example' } }],
    [404, 'NO_SUCH_ROUTE', '/api/v1/nothing', {}],
    [404, 'NO_SUCH_ROUTE', '/api/v1/status', { method: 'DELETE' }],
    [
      413,
      'BODY_TOO_LARGE',
      '/api/v1/echo/x',
      {
        method: 'POST',
        body: JSON.stringify({ text: 'x'.repeat(4_000) }),
        headers: { 'content-type': 'application/json' },
      },
    ],
    [
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      '/api/v1/echo/x',
      { method: 'POST', body: 'text=hello', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    [415, 'UNSUPPORTED_MEDIA_TYPE', '/mcp', { method: 'POST', body: '<x/>', headers: { 'content-type': 'text/xml' } }],
  ])('%i %s for %s', async (status, code, path, init) => {
    const door = await anOpenDoor(await rooms(), withEcho);
    const response = await door.get(path, init);

    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(await response.json()).toMatchObject({
      type: `urn:reeve:error:${code}`,
      title: expect.any(String),
      status,
      code,
      detail: expect.stringMatching(/\S/),
      next: expect.stringMatching(/\S/),
      actor: expect.any(String),
    });
  });

  test('503 with the reason while Redis is down', async () => {
    await using own = await startTestRedis();
    const open = await theRooms(targetOf(own.options));
    const door = await anOpenDoor(open);
    await own.stop();
    await until('the break is noticed', () => open.connection.commands.status !== 'ready');

    const response = await door.get('/api/v1/events');
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([503, 'REDIS_UNAVAILABLE']);
    const ready = await door.get('/readyz');
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({
      ready: false,
      dependencies: [{ name: 'redis', ok: false, code: 'REDIS_UNAVAILABLE' }],
    });
    expect((await door.get('/healthz')).status).toBe(200);
  });

  test('500 without the inside of an unforeseen failure', async () => {
    const broken = {
      ...echo,
      http: { method: 'GET' as const, path: '/broken' },
      run: async () => ({ secret: 'inside' }),
      input: z.object({}).strict(),
    };
    const door = await anOpenDoor(await rooms(), { operations: [broken] });
    const response = await door.get('/api/v1/broken');

    expect(response.status).toBe(500);
    expect(await response.text()).toMatch(/"INTERNAL"/);
  });
});

describe('a request', () => {
  test('finds its input in path, query and body', async () => {
    const door = await anOpenDoor(await rooms(), withEcho);
    const headers = { 'content-type': 'application/json' };
    const response = await door.get('/api/v1/echo/a%2Fb?times=2', {
      method: 'POST',
      headers,
      body: '{"text":"hello"}',
    });

    expect(await response.json()).toEqual({ said: ['a/b: hello', 'a/b: hello'], by: 'local' });
    const nothing = { said: ['x: nothing'], by: 'local' };
    expect(await (await door.get('/api/v1/echo/x', { method: 'POST' })).json()).toEqual(nothing);
    // Many clients say that they send JSON where they send nothing.
    expect(await (await door.get('/api/v1/echo/x', { method: 'POST', headers })).json()).toEqual(nothing);
  });

  test.each(['[1]', '"text"', '7'])('whose body is %s and no object is refused', async (body) => {
    const door = await anOpenDoor(await rooms(), withEcho);
    const response = await door.get('/api/v1/echo/x', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });

    expect(response.status).toBe(400);
  });

  test('is answered so that no cache keeps it and no browser guesses its type', async () => {
    const door = await anOpenDoor(await rooms());
    const { headers } = await door.get('/api/v1/status');

    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });
});

describe('a page in a browser', () => {
  test.each(['/api/v1/status', '/healthz', '/metrics', '/api/v1/openapi.json', '/docs', '/mcp'])(
    'that resolves its own name to this machine cannot read %s',
    async (path) => {
      const door = await anOpenDoor(await rooms());
      const { status, text } = await send(door.url, path, { host: 'evil.example:7420' });

      expect(status).toBe(403);
      expect(text).toContain('DENIED');
    },
  );

  test('may be one of our own, under any name of this machine', async () => {
    const door = await anOpenDoor(await rooms());
    const { port } = new URL(door.url);
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
      const { status } = await send(door.url, '/api/v1/status', { host, origin: `http://${host.toLowerCase()}` });
      expect([host, status]).toEqual([host, 200]);
    }
  });

  test.each(['https://evil.example', 'null', 'http://localhost.evil.example', 'http://127.0.0.1.nip.io'])(
    'of %s cannot call us',
    async (origin) => {
      const door = await anOpenDoor(await rooms(), withEcho);

      expect((await door.get('/api/v1/echo/x', { method: 'POST', headers: { origin } })).status).toBe(403);
    },
  );

  test('of another program on this machine cannot call us', async () => {
    const door = await anOpenDoor(await rooms(), withEcho);
    const origin = 'http://127.0.0.1:1';

    expect((await door.get('/api/v1/echo/x', { method: 'POST', headers: { origin } })).status).toBe(403);
  });
});

describe('listening', () => {
  test.each(['0.0.0.0', '::', '192.168.1.5', 'example.org'])('beyond this machine, on %s, is refused', async (host) => {
    const door = aDoor(await rooms(), { host });

    await expect(door.start()).rejects.toMatchObject({ code: 'INSECURE_BIND', details: { host } });
  });

  test('is on loopback only', async () => {
    const door = await anOpenDoor(await rooms());
    const { port } = new URL(door.url);
    const outside = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .find(({ internal, family }) => !internal && family === 'IPv4');
    expect(isLoopbackHost(new URL(door.url).hostname)).toBe(true);
    const knocked = outside && (await failureOf(fetch(`http://${outside.address}:${port}/healthz`)));
    expect(knocked ?? new TypeError('this machine has no other address')).toBeInstanceOf(TypeError);
  });

  test('on a port that another program has says so', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };

    await expect(aDoor(await rooms(), { port }).start()).rejects.toMatchObject({
      code: 'PORT_TAKEN',
      details: { port },
    });
  });
});

describe('stopping', () => {
  /** An operation that takes until it is let go. */
  function aLongOne() {
    const [began, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const operation = defineOperation({
      name: 'test.long',
      summary: 'Take long',
      access: 'read',
      input: z.object({}),
      output: z.object({ done: z.boolean() }),
      errors: [],
      http: { method: 'GET', path: '/long' },
      cli: { words: 'long', examples: ['reeve long'] },
      run: async () => {
        began.resolve();
        await goOn.promise;
        return { done: true };
      },
    });
    return { operation, began: began.promise, goOn: goOn.resolve };
  }

  test('lets a request under way finish, and turns away the next on the same connection', async () => {
    const long = aLongOne();
    const open = await rooms();
    const door = await anOpenDoor(open, { operations: [...operations, long.operation] });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const idle = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => {
      agent.destroy();
      idle.destroy();
    });
    await send(door.url, '/healthz', {}, idle);
    const running = send(door.url, '/api/v1/long', {}, agent);
    await long.began;
    const stopped = door.stop();
    const late = await send(door.url, '/api/v1/status', {}, idle);
    long.goOn();

    expect(late.status).toBe(503);
    expect(late.headers['retry-after']).toMatch(/^\d+$/);
    expect(JSON.parse(late.text)).toMatchObject({ code: 'SHUTTING_DOWN', retry_after_seconds: expect.any(Number) });
    expect(await running).toMatchObject({ status: 200, text: '{"done":true}' });
    await stopped;
    expect(open.readiness.draining).toBe(true);
    expect(await failureOf(fetch(`${door.url}/healthz`))).toBeInstanceOf(TypeError);
  });

  test('cuts off what takes longer than the time to drain', async () => {
    const long = aLongOne();
    const door = await anOpenDoor(await rooms(), { operations: [long.operation], drainMs: 100 });
    const running = failureOf(fetch(`${door.url}/api/v1/long`));
    await long.began;
    await door.stop();

    expect(await running).toBeInstanceOf(TypeError);
    long.goOn();
  });

  test('ends the streams of those who follow', async () => {
    const door = await anOpenDoor(await rooms());
    const response = await door.get('/api/v1/events', { headers: { accept: 'text/event-stream' } });
    const ended = response.text();
    await door.stop();

    expect(await ended).toMatch(/^retry: \d+/);
  });

  test('and starting again works', async () => {
    const door = await anOpenDoor(await rooms());
    await door.stop();
    await door.start();

    expect((await door.get('/healthz')).status).toBe(200);
  });
});

describe('metrics', () => {
  test('are text as Prometheus reads it, and count', async () => {
    const open = await rooms();
    const door = await anOpenDoor(open);
    await door.get('/api/v1/status');
    await door.get('/api/v1/nothing');
    await open.events.append('lock:expired', { lock: 'x' });
    await open.connection.commands.xadd(open.events.key('lock'), '*', 'event', 'made up by a raw client');
    const scrape = async () => (await door.get('/metrics')).text();
    await until('the events are counted', async () => (await scrape()).includes('event="other"} 1'));
    const response = await door.get('/metrics');
    const text = await response.text();
    const sample =
      /^[a-zA-Z_:][\w:]*(\{[a-zA-Z_]\w*="(\\.|[^"\\])*"(,[a-zA-Z_]\w*="(\\.|[^"\\])*")*\})? ([Nn]a[Nn]|[+-]?(Inf|[\d.e+-]+))$/;

    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(text.split('\n').filter((line) => line && !/^# (HELP|TYPE) /.test(line) && !sample.test(line))).toEqual([]);
    expect(text).toContain('reeve_events_total{stream="lock",event="lock:expired"} 1');
    expect(text).toContain('reeve_dependency_up{dependency="redis"} 1');
    expect(text).toMatch(
      /reeve_http_request_duration_seconds_count\{route="\/api\/v1\/status",method="GET",status="200"\} 1/,
    );
    expect(text).toMatch(/duration_seconds_count\{route="unknown",method="GET",status="404"\} 1/);
  });
});

test('a caller who hangs up does not keep the work waiting', async () => {
  let aborted: Promise<unknown> | undefined;
  const patient = defineOperation({
    name: 'test.patient',
    summary: 'Wait',
    access: 'read',
    input: z.object({}),
    output: z.object({}),
    errors: [],
    http: { method: 'GET', path: '/patient' },
    cli: { words: 'patient', examples: ['reeve patient'] },
    run: async ({ signal }) => {
      aborted = systemClock.sleep(3_600_000, signal);
      await aborted;
      return {};
    },
  });
  const door = await anOpenDoor(await rooms(), { operations: [patient] });
  const gone = new AbortController();
  const asked = failureOf(door.get('/api/v1/patient', { signal: gone.signal }));
  await until('the work began', () => aborted !== undefined);
  gone.abort();

  expect(await asked).toMatchObject({ name: 'AbortError' });
  await aborted;
});

describe('a delivery that does not arrive', () => {
  const head = (length: number) =>
    `POST /webhook/github HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  const deliveries = () => {
    const seen: number[] = [];
    const handle = async ({ body }: { body: Uint8Array }) => {
      seen.push(body.byteLength);
      return { status: 202, says: 'accepted', sources: [] };
    };
    return { seen, webhook: { handle, mostBytes: 1_000 } };
  };

  /** Sends the start, then nothing or a byte now and then; all that came back until the connection was closed. */
  async function slowly(url: string, start: string, drip: boolean): Promise<string> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    let answer = '';
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', () => {});
    socket.write(start);
    const closed = once(socket, 'close');
    while (drip && socket.writable) {
      socket.write('x');
      await systemClock.sleep(40);
    }
    await closed;
    return answer;
  }

  test.each([
    ['its body comes byte by byte', head(900), true],
    ['its body never comes', head(900), false],
    ['its body stops half-way', `${head(900)}${'x'.repeat(400)}`, false],
    ['its headers never end', 'POST /webhook/github HTTP/1.1\r\nhost: 127.0.0.1\r\n', false],
    ['its headers come byte by byte', 'POST /webhook/github HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ', true],
  ])('is cut off when %s', async (_what, start, drip) => {
    const { seen, webhook } = deliveries();
    const door = await anOpenDoor(await rooms(), { requestMs: 300, webhook });
    const answer = await slowly(door.url, start, drip);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'REQUEST_TOO_SLOW', status: 408 });
    expect(seen).toEqual([]);
    // Others were not kept out.
    expect((await door.get('/webhook/github', { method: 'POST', body: 'whole' })).status).toBe(202);
    expect(seen).toEqual([5]);
  });

  test('is refused for the size it says, before anything of it is kept, and for the size it turns out to have', async () => {
    const { seen, webhook } = deliveries();
    const door = await anOpenDoor(await rooms(), { webhook });
    const refused = await slowly(door.url, head(1_001), false);
    expect(refused).toMatch(/^HTTP\/1\.1 413 /);
    expect(refused).toContain('larger than 1000 bytes');
    const chunked = `${head(0).replace(/content-length: 0/, 'transfer-encoding: chunked')}3e9\r\n${'x'.repeat(1_001)}`;
    expect(await slowly(door.url, chunked, false)).toMatch(/^HTTP\/1\.1 413 /);
    expect(seen).toEqual([]);
  });

  test('has nothing to do with an answer that takes long', async () => {
    const slow = defineOperation({
      name: 'test.slow',
      summary: 'Answers late',
      access: 'work',
      input: z.object({}),
      output: z.object({ late: z.boolean() }),
      errors: [],
      http: { method: 'POST', path: '/slow' },
      cli: { words: 'slow', examples: ['reeve slow'] },
      mcp: { tool: 'slow', description: 'Answers late.', readOnly: true, idempotent: true },
      run: async () => {
        await systemClock.sleep(1_000);
        return { late: true };
      },
    });
    const house = await rooms();
    const door = await anOpenDoor(house, { requestMs: 200, operations: [...operations, slow] });
    const listening = new AbortController();
    const { signal } = listening;
    const events = await door.get('/api/v1/events', { signal, headers: { accept: 'text/event-stream' } });
    const answer = await door.get('/api/v1/slow', { method: 'POST' });
    expect(await answer.json()).toMatchObject({ late: true });
    // By now the stream of events is five times as old as a request may get, and still tells what happens.
    await house.events.append('daemon:stopping', { pid: 4711, why: 'test' });
    let heard = '';
    const words = new TextDecoder();
    const reader = events.body!.getReader();
    while (!heard.includes('4711')) heard += words.decode((await reader.read()).value);
    listening.abort();
    expect(heard).toContain('daemon:stopping');
  });
});
