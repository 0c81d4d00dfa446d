import { describe, expect, test } from 'vitest';
import { ERRORS, type ErrorCode, type ErrorRow, EXIT } from '../src/error-catalogue.ts';
import { asReeveError, ReeveError, reason, toProblem } from '../src/errors.ts';

const ROWS = Object.entries(ERRORS) as [ErrorCode, ErrorRow][];

describe('the catalogue', () => {
  test.each(ROWS)('%s is a sound row', (code, { title, status, exit, says, next }) => {
    expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(title).toMatch(/^[A-Z].{2,40}[^.]$/);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(Object.values(EXIT)).toContain(exit);
    expect(exit).not.toBe(EXIT.ok);
    // A sentence, or a sentence that ends with the words of another.
    expect(says).toMatch(/(\.|\}\)?|\{\w+\}\)?\.?)$/);
    expect(next).toMatch(/^[A-Z{]/);
    expect(`${says}${next}`).not.toMatch(/!|please|sorry|oops| {4}|\t/i);
  });

  test('says nothing twice', () => {
    for (const part of ['title', 'says'] as const) {
      const texts = ROWS.map(([, row]) => row[part]);
      expect(texts.filter((text, index) => texts.indexOf(text) !== index)).toEqual([]);
    }
  });

  /** What a status means to an HTTP client, an exit code must mean to a script. */
  test.each<[number, readonly number[]]>([
    [400, [EXIT.usage]],
    [401, [EXIT.denied]],
    [403, [EXIT.denied]],
    [404, [EXIT.notFound]],
    [409, [EXIT.conflict, EXIT.held, EXIT.nothing, EXIT.differs]],
    [413, [EXIT.usage]],
    [423, [EXIT.held]],
    [429, [EXIT.unavailable]],
    [503, [EXIT.unavailable, EXIT.usage]],
    [504, [EXIT.timeout]],
  ])('HTTP %i goes with the exit codes %j', (status, exits) => {
    const strays = ROWS.filter(([, row]) => row.status === status && !exits.includes(row.exit)).map(([code]) => code);
    expect(strays).toEqual([]);
  });

  test('leaves to the caller only what the call can mend', () => {
    const strays = ROWS.filter(([, { actor, status }]) => actor === 'caller' && status >= 500).map(([code]) => code);
    // Whether the call was carried out only its caller can find out.
    expect(strays).toEqual(['REDIS_REPLY_UNKNOWN']);
  });

  test('names only commands that exist where it says what to do next', async () => {
    const { makeManifest } = await import('../src/cli/manifest.ts');
    const { operations } = await import('../src/operations/index.ts');
    const words = makeManifest(operations, '0.0.0').commands.map((command) => command.words.join(' '));
    const named = ROWS.flatMap(([, { next }]) =>
      [...next.matchAll(/: reeve ((?:[a-z-]+ ?)+)/g)].map(([, it = '']) => it.trim()),
    );
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((command) => !words.some((known) => `${command} `.startsWith(`${known} `)))).toEqual([]);
  });
});

describe('an error', () => {
  const error = new ReeveError('PORT_TAKEN', { host: '127.0.0.1', port: 7420 }, { cause: new Error('EADDRINUSE') });

  test('fills its wording from its details', () => {
    expect(error.message).toBe('127.0.0.1:7420 is in use by another program.');
    expect(new ReeveError('USAGE', { problem: 'no', hint: 'try $& and {x}' }).next).toBe('try $& and {x}');
  });

  test('leaves a placeholder standing that nobody filled, so that the omission is seen', () => {
    expect(new ReeveError('PORT_TAKEN', { host: 'h' }).message).toBe('h:{port} is in use by another program.');
  });

  test('leaves the daemon as one problem, whatever the door', () => {
    expect(toProblem(error)).toEqual({
      type: 'urn:reeve:error:PORT_TAKEN',
      title: 'Port taken',
      status: 500,
      code: 'PORT_TAKEN',
      detail: '127.0.0.1:7420 is in use by another program.',
      next: 'Stop that program, or choose another port: reeve daemon --http-port PORT (0 takes any free one)',
      actor: 'human',
      details: { host: '127.0.0.1', port: 7420 },
    });
  });

  test('tells no cause, no stack and no empty details to the outside', () => {
    const problem = toProblem(asReeveError(new Error('the password is sesame')));
    expect(problem).toMatchObject({ code: 'INTERNAL', status: 500 });
    expect(problem).not.toHaveProperty('details');
    expect(JSON.stringify(problem)).not.toMatch(/sesame|at .*\.ts/);
  });

  test('says when to come back, if anybody knows', () => {
    expect(toProblem(new ReeveError('SHUTTING_DOWN', { retryAfterSeconds: 5 }))).toMatchObject({
      retry_after_seconds: 5,
    });
    expect(toProblem(new ReeveError('SHUTTING_DOWN'))).not.toHaveProperty('retry_after_seconds');
  });

  test('stays what it is when it is wrapped, and keeps what it wraps', () => {
    expect(asReeveError(error)).toBe(error);
    const thrown = { odd: true };
    expect(asReeveError(thrown)).toMatchObject({ code: 'INTERNAL', cause: thrown });
  });
});

describe('a reason', () => {
  test.each([
    ['an error', new Error('broken'), 'broken'],
    ['an error without words', new TypeError(), 'TypeError'],
    ['several errors', new AggregateError([new Error('one'), 'two'], 'all'), 'one; two'],
    ['several errors of none', new AggregateError([], 'all'), 'all'],
    ['a text', 'no', 'no'],
    ['nothing', undefined, 'undefined'],
  ])('of %s', (_, thrown, said) => {
    expect(reason(thrown)).toBe(said);
  });
});
