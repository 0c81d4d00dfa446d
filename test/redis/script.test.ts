import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { actAs } from '../../src/actor.ts';
import { silentLog } from '../../src/log.ts';
import { defineScript, type Script } from '../../src/redis/script.ts';
import { startCluster, type TestCluster } from '../support/cluster.ts';
import { DURABLE, type RedisProcess, runRedis } from '../support/redis-process.ts';
import { anEventRoom, type EventRoom, noStrayKeys, targetOf } from '../support/rooms.ts';

let dir: string;
let server: RedisProcess;
let observer: Redis;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'reeve-lua-'));
  server = await runRedis(DURABLE);
  observer = new Redis(server.port);
  observer.on('error', () => {});
});
beforeEach(() => observer.flushall());
afterEach(() => noStrayKeys(observer));
afterAll(async () => {
  observer.disconnect();
  await server[Symbol.asyncDispose]();
  await rm(dir, { recursive: true, force: true });
});

let written = 0;
/** A Lua file of the test's own. */
async function lua(text: string, name = `script-${++written}.lua`): Promise<URL> {
  await writeFile(join(dir, name), text);
  return pathToFileURL(join(dir, name));
}

const anything = (raw: unknown) => raw;
const fragment = (name: string) => new URL(`../../src/redis/lua/${name}`, import.meta.url).pathname;

/** A script without keys or arguments, and what it answers. */
const saying = async (text: string): Promise<Script<never, never, Record<never, never>, unknown>> =>
  defineScript({ file: await lua(text), keys: [], args: {}, reply: anything });

const aRoom = (context = {}): Promise<EventRoom> => anEventRoom(targetOf({ port: server.port }), { context });

describe('a definition', () => {
  test.each([
    ['keys.lock', 'keys'],
    ['args.agnet', 'args'],
    ['const.transitions', 'const'],
    ['ctx.shift', 'ctx'],
    ['key.noSuchKey', 'key'],
  ])('is refused when its Lua says %s, which nobody declared', async (word) => {
    const file = await lua(`return ${word}`);

    expect(() => defineScript({ file, keys: [], args: {}, reply: anything })).toThrow(`undeclared ${word}`);
  });

  test('is refused for what a fragment says, too', async () => {
    await lua('local function helper() return args.missing end', '_helper.lua');
    const file = await lua('-- @include _helper.lua\nreturn helper()');

    expect(() => defineScript({ file, keys: [], args: {}, reply: anything })).toThrow('undeclared args.missing');
  });

  test.each([
    ['a comment that speaks of args.nothing', "-- args.nothing\nreturn 'x'"],
    ['a long comment', '--[[ args.nothing\n args.neither ]] return 1'],
    ['a text', `return 'args.nothing' .. "keys.nothing"`],
    ['a text with a quote in it', `return 'it\\'s args.nothing'`],
    ['a field of something else', 'local my = { args = { x = 1 } } return my.args.x'],
  ])('may mention any name in %s', async (_, text) => {
    const file = await lua(text);

    expect(() => defineScript({ file, keys: [], args: {}, reply: anything })).not.toThrow();
  });

  test('is refused for a name behind a text that looks like a comment', async () => {
    const file = await lua(`local dashes = '--' return args.missing`);

    expect(() => defineScript({ file, keys: [], args: {}, reply: anything })).toThrow('undeclared args.missing');
  });

  test('includes a fragment once, however often it is named', async () => {
    await lua("local function base() return 'base' end", '_base.lua');
    await lua('-- @include _base.lua\nlocal function left() return base() end', '_left.lua');
    await lua('-- @include _base.lua\nlocal function right() return base() end', '_right.lua');
    const script = await saying('-- @include _left.lua\n-- @include _right.lua\nreturn left() .. right()');
    const { lua: text } = script.source({ keyspace: { mode: 'standalone' }, shebang: false });

    expect(text.match(/local function base/g)).toHaveLength(1);
    expect(await (await aRoom()).scripts.run(script, {}, {})).toBe('basebase');
  });

  test('is sent with its keys written out where it asks for them, one within another too', async () => {
    const script = defineScript({
      file: await lua(
        "local t = { 'T-1' } -- key.taskLock(x)\nreturn { key.lockRegistry(), key.taskLock(t[1]), key.taskStatus(string.sub(key.taskLock('(,'), 1, 3)) }",
      ),
      keys: [],
      args: {},
      reply: anything,
    });
    const { lua: text } = script.source({ keyspace: { mode: 'standalone' }, shebang: false });

    expect(text).toContain('-- key.taskLock(x)');
    expect(text).toContain(
      "{ 'ade:lock:registry', ('ade:lock:task:' .. (t[1])), ('odyssey:task:' .. (string.sub(('ade:lock:task:' .. '(,'), 1, 3)) .. ':status') }",
    );
    expect(() => script.source({ keyspace: { mode: 'cluster' }, shebang: true })).not.toThrow();
    const few = defineScript({ file: await lua('return key.taskLock()'), keys: [], args: {}, reply: anything });
    expect(() => few.source({ keyspace: { mode: 'standalone' }, shebang: false })).toThrow('key.taskLock takes task');
  });

  test('is sent with positions for names, and with its comments and texts as they are', async () => {
    const script = defineScript({
      file: await lua(
        "-- args.agent\nlocal my = { args = { agent = 'args.agent' } } return keys.lock .. args.agent .. my.args.agent",
      ),
      keys: ['lock'],
      args: { count: 'number', agent: 'string' },
      reply: anything,
    });
    const { lua: text } = script.source({ keyspace: { mode: 'standalone' }, shebang: false });

    expect(text.split('\n')).toEqual([
      'ARGV[1] = tonumber(ARGV[1])',
      '-- args.agent',
      "local my = { args = { agent = 'args.agent' } } return KEYS[1] .. ARGV[2] .. my.args.agent",
    ]);
  });

  test('is not sent the last arguments that are as usual, and reads them all the same', async () => {
    const script = defineScript({
      file: await lua('return { #ARGV, args.agent, args.count + 1, args.word }'),
      keys: [],
      args: { agent: 'string', count: 'number', word: 'string' },
      defaults: { count: 4, word: 'it\'s "usual"' },
      reply: anything,
    });
    const { scripts } = await aRoom();
    const answer = (count: number, word: string) => scripts.run(script, {}, { agent: 'ann', count, word });

    expect(await answer(4, 'it\'s "usual"')).toEqual([1, 'ann', 5, 'it\'s "usual"']);
    expect(await answer(7, 'it\'s "usual"')).toEqual([2, 'ann', 8, 'it\'s "usual"']);
    expect(await answer(4, '')).toEqual([3, 'ann', 5, '']);
  });

  test('has what no call changes in its text, and a clock that was moved among its arguments', async () => {
    const script = defineScript({
      file: await lua('return { #ARGV, ctx.source, ctx.keep, ctx.shift_us, args.word }'),
      keys: [],
      args: { word: 'string' },
      reply: anything,
    });
    const room = await aRoom({ source: "o'brien]]", keep: 70 });
    const answer = () => room.scripts.run(script, {}, { word: 'here' });

    expect(await answer()).toEqual([1, "o'brien]]", '70', 0, 'here']);
    room.shiftUs(5_000_000);
    expect(await answer()).toEqual([2, "o'brien]]", '70', 5_000_000, 'here']);
    room.shiftUs(-5_000_000);
    expect(await answer()).toEqual([1, "o'brien]]", '70', 0, 'here']);
  });

  test('sends a header only to servers that know it', async () => {
    const script = await saying('return 1');
    const text = (shebang: boolean) => script.source({ keyspace: { mode: 'standalone' }, shebang }).lua;

    expect(text(true).startsWith('#!lua\n')).toBe(true);
    expect(text(false)).not.toContain('#!');
    const { connection, scripts } = await aRoom();
    await observer.config('RESETSTAT');
    await scripts.run(script, {}, {});
    const known = await observer.script(
      'EXISTS',
      script.source({ keyspace: { mode: 'standalone' }, shebang: connection.server.major >= 7 }).sha,
    );
    expect(known).toEqual([1]);
  });
});

describe('a run', () => {
  test('finds keys and arguments by name, each as what it is', async () => {
    const { scripts, keys } = await aRoom();
    const script = defineScript({
      file: await lua(
        "redis.call('SET', keys.one, args.text) return cjson.encode({ keys.one, keys.two, args.text, args.count + 1, args.facts.deep[2], #keys.rest, keys.rest[2] })",
      ),
      keys: ['one', 'two'],
      keyList: 'rest',
      args: { text: 'string', count: 'number', facts: 'json' },
      reply: (raw) => JSON.parse(z.string().parse(raw)) as unknown,
    });
    const [one, two, three, four] = [
      keys.systemEvents(),
      keys.coordinationEvents(),
      keys.assetSyncEvents(),
      keys.events('lock'),
    ];
    const given = { text: `it's "quoted" ]==] ü\n`, count: 41, facts: { deep: [1, 'second'] } };

    const answer = await scripts.run(script, { one, two, rest: [three, four] }, given);

    expect(answer).toEqual([one, two, given.text, 42, 'second', 2, four]);
    await observer.del(one);
  });

  test('takes a list of texts as it is, after everything else', async () => {
    const { scripts } = await aRoom();
    const file = await lua(
      "return { args.first, tostring(#args.rest), args.rest[1], args.rest[#args.rest] or 'none' }",
    );
    const script = defineScript({
      file,
      keys: [],
      args: { first: 'string', rest: 'texts' },
      reply: (raw) => z.array(z.string()).parse(raw),
    });
    const rest = ['["no', 'JSON"]', 'ü'];
    expect(await scripts.run(script, {}, { first: 'one', rest })).toEqual(['one', '3', '["no', 'ü']);
    expect(await scripts.run(script, {}, { first: 'one', rest: ['last'] })).toEqual(['one', '1', 'last', 'last']);

    const early = { file, keys: [], args: { rest: 'texts', first: 'string' }, reply: String } as const;
    expect(() => defineScript(early)).toThrow('a list of texts comes last');
  });

  test.each([
    ['half a character', 'a\ud800b', 'a\ufffdb'],
    ['its other half', '\udc00', '\ufffd'],
    ['a whole one', '😀', '😀'],
    ['what looks like one', '\\ud800 \\\\ud800', '\\ud800 \\\\ud800'],
  ])('takes %s in JSON as it takes it in a text', async (_, given, taken) => {
    const { scripts } = await aRoom();
    const script = defineScript({
      file: await lua('return { args.facts.text, args.text }'),
      keys: [],
      args: { facts: 'json', text: 'string' },
      reply: (raw) => raw,
    });
    expect(await scripts.run(script, {}, { facts: { text: given }, text: given })).toEqual([taken, taken]);
  });

  test('may change an argument for what follows, and reads a constant number', async () => {
    const { scripts } = await aRoom();
    const script = defineScript({
      file: await lua("args.agent, args.count = 'bob', args.count - const.step return args.agent .. args.count * 2"),
      keys: [],
      args: { agent: 'string', count: 'number' },
      constants: { step: -0.5 },
      reply: anything,
    });

    expect(await scripts.run(script, {}, { agent: 'ann', count: 4 })).toBe('bob9');
  });

  test('may be given an empty list of keys', async () => {
    const { scripts } = await aRoom();
    const script = defineScript({
      file: await lua('return #keys.all'),
      keys: [],
      keyList: 'all',
      args: {},
      reply: anything,
    });

    expect(await scripts.run(script, { all: [] }, {})).toBe(0);
  });

  test('keeps whole numbers up to microseconds of the year 2200', async () => {
    const { scripts } = await aRoom();
    const script = defineScript({
      file: await lua("return string.format('%.0f', args.us)"),
      keys: [],
      args: { us: 'number' },
      reply: anything,
    });
    const us = Date.UTC(2200, 0) * 1000 + 1;

    expect(await scripts.run(script, {}, { us })).toBe(String(us));
  });

  test('sees constants exactly as they were declared, whatever they hold', async () => {
    const { scripts } = await aRoom();
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc
        .array(fc.constantFrom(']', '=', '[', '"', "'", '\\', '\n', '\r', '--', '$&', 'x'))
        .map((parts) => parts.join('')),
      fc.constantFrom(']==]', ']]', ']==] return redis.call("FLUSHALL") --[==[', '\\u005d', '\u2028'),
    );
    const file = await lua('return cjson.encode(const.table)');
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text, { minKeys: 1 }), async (table) => {
        const script = defineScript({
          file,
          keys: [],
          args: {},
          constants: { table },
          reply: (raw) => JSON.parse(String(raw)) as unknown,
        });

        expect(await scripts.run(script, {}, {})).toEqual({ ...table });
      }),
      { numRuns: 60 },
    );
  });

  test('spells keys in Lua as TypeScript does', async () => {
    const { scripts, keys } = await aRoom();
    const script = defineScript({
      file: await lua("return { key.taskLock(args.task), key.events('lock') }"),
      keys: [],
      args: { task: 'string' },
      reply: anything,
    });

    expect(await scripts.run(script, {}, { task: 'T-1' })).toEqual([keys.taskLock('T-1'), keys.events('lock')]);
  });

  test('sends the text once, then only its hash', async () => {
    const { scripts } = await aRoom();
    const script = await saying('return 7');
    await observer.script('FLUSH');
    await observer.config('RESETSTAT');
    for (let time = 0; time < 5; time++) await scripts.run(script, {}, {});
    const calls = async (command: string) =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await observer.info('commandstats'))?.[1] ?? 0);

    expect(await calls('eval')).toBe(1);
    expect(await calls('evalsha')).toBe(5);
  });

  test.each([
    ['SCRIPT FLUSH', async () => void (await observer.script('FLUSH'))],
    [
      'a restart of the server',
      async () => {
        await server.crash();
        await server.start();
      },
    ],
  ])('works after %s made the server forget', async (_, forget) => {
    const { scripts, connection } = await aRoom();
    const script = await saying('return 7');
    await scripts.run(script, {}, {});

    await forget();
    await connection.whenReady(AbortSignal.timeout(20_000));

    expect(await scripts.run(script, {}, {})).toBe(7);
  });

  test('that answers out of form says which script did', async () => {
    const { scripts } = await aRoom();
    const script = defineScript({
      file: await lua("return 'MAYBE'", 'decide.lua'),
      keys: [],
      args: {},
      reply: (raw) => z.enum(['YES', 'NO']).parse(raw),
    });

    await expect(scripts.run(script, {}, {})).rejects.toMatchObject({
      code: 'SCRIPT_REPLY_INVALID',
      details: { script: 'decide.lua' },
    });
  });

  test('that breaks in Lua is not taken for a failure of the connection', async () => {
    const { scripts } = await aRoom();
    const script = await saying("error('no such thing')");

    await expect(scripts.run(script, {}, {})).rejects.toThrow('no such thing');
    await expect(scripts.run(script, {}, {})).rejects.not.toHaveProperty('code', 'REDIS_UNAVAILABLE');
  });

  test('on a server that is down fails as unavailable', async () => {
    const { scripts, connection } = await aRoom();
    const script = await saying('return 7');
    await server.crash();
    const attempt = scripts.run(script, {}, {});

    await expect(attempt).rejects.toMatchObject({ code: expect.stringMatching(/^REDIS_(UNAVAILABLE|REPLY_UNKNOWN)$/) });
    await server.start();
    await connection.whenReady(AbortSignal.timeout(20_000));
  });

  test('on a server without memory to spare fails as unavailable, and changes nothing', async () => {
    const { scripts, keys } = await aRoom();
    const script = defineScript({
      file: await lua("return redis.call('SET', keys.one, 'x')"),
      keys: ['one'],
      args: {},
      reply: anything,
    });
    await observer.config('SET', 'maxmemory', '1');

    const attempt = scripts.run(script, { one: keys.systemEvents() }, {});

    await expect(attempt).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE', message: expect.stringContaining('OOM') });
    await observer.config('SET', 'maxmemory', '0');
    expect(await observer.dbsize()).toBe(0);
  });
});

describe('time in scripts', () => {
  test('is that of Redis, in microseconds, shifted as a test wishes', async () => {
    const room = await aRoom();
    const script = await saying(`-- @include ${fragment('_time.lua')}\nreturn string.format('%.0f', now_us())`);
    const [seconds, micros] = await observer.time();
    const now = Number(seconds) * 1e6 + Number(micros);
    const plain = Number(await room.scripts.run(script, {}, {}));
    room.shiftUs(3_600e6);
    const shifted = Number(await room.scripts.run(script, {}, {}));

    expect(plain - now).toBeGreaterThanOrEqual(0);
    expect(plain - now).toBeLessThan(10e6);
    expect(shifted - plain).toBeGreaterThanOrEqual(3_600e6);
    expect(shifted - plain).toBeLessThan(3_610e6);
  });

  test('is written as JavaScript writes it, for any instant from 1970 to 2200', async () => {
    const { scripts } = await aRoom();
    const script = defineScript({
      file: await lua(
        `-- @include ${fragment('_time.lua')}\nlocal out = {} for i, us in ipairs(args.instants) do out[i] = iso_time(us) end return out`,
      ),
      keys: [],
      args: { instants: 'json' },
      reply: (raw) => z.array(z.string()).parse(raw),
    });
    const end = Date.UTC(2200, 11, 31, 23, 59, 59, 999);
    const instants = fc.array(fc.tuple(fc.integer({ min: 0, max: end }), fc.integer({ min: 0, max: 999 })), {
      minLength: 1,
      maxLength: 200,
    });
    const leapDays = [1972, 2000, 2100, 2024, 2196].flatMap((year) => [
      Date.UTC(year, 1, 28),
      Date.UTC(year, 2, 1) - 1,
      Date.UTC(year, 2, 1),
    ]);

    await fc.assert(
      fc.asyncProperty(instants, async (pairs) => {
        const written = await scripts.run(script, {}, { instants: pairs.map(([ms, us]) => ms * 1000 + us) });
        const expected = pairs.map(([ms, us]) =>
          new Date(ms).toISOString().replace('Z', `${String(us).padStart(3, '0')}Z`),
        );
        expect(written).toEqual(expected);
      }),
      { numRuns: 40, examples: [[[0, end, ...leapDays].map((ms): [number, number] => [ms, 0])]] },
    );
  });
});

describe('an event written by a script', () => {
  test('has the fields of the contract, in an entry of its own', async () => {
    const room = await aRoom({ source: 'daemon-7' });
    const script = defineScript({
      file: await lua(
        `-- @include ${fragment('_emit.lua')}\nreturn emit(keys.stream, 'lock:acquired', { lock = args.lock, agent_id = 'ann' })`,
      ),
      keys: ['stream'],
      args: { lock: 'string' },
      reply: (raw) => z.string().parse(raw),
    });
    room.shiftUs(86_400e6);
    const id = await room.scripts.run(script, { stream: room.keys.events('lock') }, { lock: 'task:1' });
    const [[found, flat] = ['', []]] = await observer.xrange(room.keys.events('lock'), '-', '+');
    const names = flat.filter((_, at) => at % 2 === 0);
    const fields = Object.fromEntries(names.map((name, at) => [name, flat[at * 2 + 1]]));

    expect(found).toBe(id);
    expect(names).toEqual(['event', 'timestamp', 'payload', 'source']);
    expect(fields).toMatchObject({ event: 'lock:acquired', source: 'daemon-7' });
    expect(JSON.parse(fields.payload!)).toEqual({ lock: 'task:1', agent_id: 'ann' });
    expect(Date.parse(fields.timestamp!) - Number.parseInt(id, 10)).toBeGreaterThan(86_390_000);
  });

  test('keeps a fencing token whole when it is given as text', async () => {
    const room = await aRoom();
    const script = defineScript({
      file: await lua(
        `-- @include ${fragment('_emit.lua')}\nreturn emit(keys.stream, 'lock:acquired', { token = string.format('%.0f', args.token) })`,
      ),
      keys: ['stream'],
      args: { token: 'number' },
      reply: anything,
    });
    await room.scripts.run(script, { stream: room.keys.events('lock') }, { token: 1_731_912_345_000_123 });
    const { events } = await room.events.latest({ streams: ['lock'] });

    expect(events[0]?.payload).toEqual({ token: '1731912345000123' });
  });

  test('keeps about as many entries as the context says', async () => {
    const room = await aRoom({ keep: 100 });
    const script = defineScript({
      file: await lua(
        `-- @include ${fragment('_emit.lua')}\nfor i = 1, 1000 do emit(keys.stream, 'lock:queued', { lock = 'x', n = i }) end`,
      ),
      keys: ['stream'],
      args: {},
      reply: anything,
    });
    await room.scripts.run(script, { stream: room.keys.events('lock') }, {});

    expect(await observer.xlen(room.keys.events('lock'))).toBeLessThanOrEqual(300);
  });
});

describe('an audit row', () => {
  const row = async (body: string) =>
    defineScript({
      file: await lua(`-- @include ${fragment('_time.lua')}\n-- @include ${fragment('_audit.lua')}\n${body}`),
      keys: [],
      args: {},
      reply: anything,
    });
  const rows = async ({ keys }: EventRoom) =>
    (await observer.xrange(keys.auditOutbox(), '-', '+')).map(([, flat]) =>
      Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]]] : []))),
    );

  test('says who acted, from where and why, without the room between having passed it on', async () => {
    const room = await aRoom({ source: 'daemon-7' });
    const script = await row(
      `return audit(iso_time(now_us()), 'approve', 'approval:t.1', 'REVIEWING', 'APPROVED', 'task', 't', 'config_hash', 'c0ffee')`,
    );
    const ann = { user: 'ann', session: 's1', ip: '10.0.0.7', reason: 'looks right', cmd_id: 'c1' };
    await actAs(ann, async () => {
      await Promise.resolve();
      await room.scripts.run(script, {}, {});
    });

    const [found] = await rows(room);
    expect(found).toMatchObject({
      action: 'approve',
      subject: 'approval:t.1',
      from: 'REVIEWING',
      to: 'APPROVED',
      task: 't',
      config_hash: 'c0ffee',
      service: 'daemon-7',
    });
    expect(found?.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(JSON.parse(found?.actor ?? '')).toEqual(ann);
  });

  test('of what nobody asked for is the system’s, and calls at the same time keep their own', async () => {
    const room = await aRoom();
    const script = await row(`return audit('now', 'claim', 'task:t', 'APPROVED', 'APPLYING')`);
    const run = () => room.scripts.run(script, {}, {});
    await run();
    await Promise.all(['ann', 'ben'].map((user) => actAs({ user }, run)));

    expect((await rows(room)).map(({ actor = '' }) => JSON.parse(actor).user)).toEqual(['system', 'ann', 'ben']);
  });
});

describe('in a cluster', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  test('a script runs where its key is, and may not touch a key of another slot that it did not declare', async () => {
    const { scripts, keys } = await anEventRoom(cluster.target, { space: { mode: 'cluster' }, log: silentLog });
    const honest = defineScript({
      file: await lua("return redis.call('EXISTS', keys.stream)"),
      keys: ['stream'],
      args: {},
      reply: anything,
    });
    const sly = defineScript({
      file: await lua("redis.call('SET', keys.stream, 'x') return redis.call('SET', args.other, 'x')"),
      keys: ['stream'],
      args: { other: 'string' },
      reply: anything,
    });

    expect(await scripts.run(honest, { stream: keys.events('lock') }, {})).toBe(0);
    await expect(scripts.run(sly, { stream: keys.events('lock') }, { other: 'elsewhere' })).rejects.toThrow(
      /non local key|not hash to the same slot|undeclared/i,
    );
  });
});
