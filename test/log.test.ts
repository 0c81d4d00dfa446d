import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LOG_LEVELS, maskUrl, silentLog } from '../src/log.ts';
import { capturedLog } from './support/log.ts';

const json = async (level: (typeof LOG_LEVELS)[number] = 'trace') => {
  const { log, text } = await capturedLog({ level, format: 'json' });
  const lines = async () =>
    (await text())
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, lines };
};

describe('the JSON form', () => {
  test('is one object a line: when, how bad, what, and the fields', async () => {
    const { log, lines } = await json();
    log.info('task claimed', { taskId: 't-1', waitedMs: 12 });
    expect(await lines()).toEqual([
      {
        level: 30,
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        taskId: 't-1',
        waitedMs: 12,
        msg: 'task claimed',
      },
    ]);
  });

  test('keeps a text with line breaks on its line', async () => {
    const { log, lines } = await json();
    log.warn('strange', { problem: 'one\ntwo' });
    expect(await lines()).toMatchObject([{ problem: 'one\ntwo' }]);
  });

  test('names the component of a child', async () => {
    const { log, lines } = await json();
    log.child('redis').error('gone');
    expect(await lines()).toMatchObject([{ component: 'redis', msg: 'gone', level: 50 }]);
  });
});

describe('levels', () => {
  const ALL = ['debug', 'info', 'warn', 'error'] as const;

  test.each([
    ['trace', ['debug', 'info', 'warn', 'error']],
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ] as const)('%s lets through %j', async (level, through) => {
    const { log, lines } = await json(level);
    for (const one of ALL) log[one](one);
    expect((await lines()).map(({ msg }) => msg)).toEqual(through);
  });

  test('may be changed while it runs, for children too', async () => {
    const { log, lines } = await json('warn');
    log.info('before');
    log.setLevel('debug');
    log.debug('after');
    log.child('made later').debug('child');
    expect((await lines()).map(({ msg }) => msg)).toEqual(['after', 'child']);
  });

  test('change for children that were made before', async () => {
    const { log, lines } = await json('warn');
    const child = log.child('made before');
    log.setLevel('debug');
    child.debug('child');
    expect((await lines()).map(({ msg }) => msg)).toEqual(['child']);
  });

  test('the silent log says nothing', () => {
    expect(() => silentLog.child('x').error('nobody hears this', { token: 't' })).not.toThrow();
  });
});

describe('the pretty form', () => {
  test('is for people: the time of day, the level, the component and the sentence', async () => {
    const { log, text } = await capturedLog({ level: 'info', format: 'pretty' });
    log.child('redis').info('server started', { pid: 4711 });
    const line = await text();
    expect(line).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] .*INFO.*: .*redis: server started/);
    expect(line).toContain('4711');
    expect(line).not.toContain('{');
  });

  test('hides what the JSON form hides', async () => {
    const { log, text } = await capturedLog({ level: 'info', format: 'pretty' });
    log.info('connected', { password: 'sesame', url: 'redis://u:sesame@host', deep: { list: [{ token: 'sesame' }] } });
    expect(await text()).not.toContain('sesame');
  });
});

describe('secrets', () => {
  test.each([
    'password',
    'token',
    'secret',
    'authorization',
    'Authorization',
    'cookie',
    'privateKey',
    'private_key',
    'webhookSecret',
    'sentinelPassword',
  ])('the field %s is hidden at every depth', async (name) => {
    const { log, lines } = await json();
    const secret = { [name]: 'sesame' };
    log.info('fields', { ...secret, one: secret, two: { three: [secret, { four: secret }] } });
    const [line] = await lines();
    expect(JSON.stringify(line)).not.toContain('sesame');
    expect(line).toMatchObject({ [name]: '[hidden]', one: { [name]: '[hidden]' } });
  });

  test('a field that is not set is left out rather than hidden', async () => {
    const { log, lines } = await json();
    log.info('fields', { token: undefined });
    expect((await lines())[0]).not.toHaveProperty('token');
  });

  test('what merely sounds like one is shown', async () => {
    const { log, lines } = await json();
    log.info('fields', { tokens: 3, passwordless: true, fencing: 7 });
    expect(await lines()).toMatchObject([{ tokens: 3, passwordless: true, fencing: 7 }]);
  });

  test.each([
    ['redis://:sesame@host:6379/0', 'redis://***@host:6379/0'],
    ['rediss://user:sesame@a:1,b:2', 'rediss://***@a:1,b:2'],
    ['postgresql+ssl://user@host/db?password=sesame&x=1', 'postgresql+ssl://***@host/db?password=***&x=1'],
    ['https://host/path?access_token=sesame', 'https://host/path?access_token=***'],
    [
      'connect to redis://u:sesame@h failed, https://u:sesame@h too',
      'connect to redis://***@h failed, https://***@h too',
    ],
    ['redis://:se/sa@me@host', 'redis://***@host'],
    ['https://host/path?q=1', 'https://host/path?q=1'],
    ['git@github.com:acme/assets', 'git@github.com:acme/assets'],
    ['no URL at all', 'no URL at all'],
  ])('of %s only %s is shown', (text, shown) => {
    expect(maskUrl(text)).toBe(shown);
  });

  test('no password of a URL survives, whatever it is made of', () => {
    const password = fc.string({ minLength: 1 }).map((tail) => `sesame${encodeURIComponent(tail.toWellFormed())}`);
    const scheme = fc.constantFrom('redis', 'rediss', 'postgres', 'https', 'git+ssh');
    fc.assert(
      fc.property(scheme, password, (one, secret) => {
        const shown = maskUrl(`it said: "${one}://user:${secret}@host/0" (twice: ${one}://:${secret}@host)`);
        expect(shown).not.toContain('sesame');
        expect(shown).toContain(`${one}://***@host`);
      }),
    );
  });
});
