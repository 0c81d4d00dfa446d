import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ReeveError } from '../../src/errors.ts';
import {
  ACCESS,
  type Access,
  type Context,
  defineOperation,
  follow,
  invoke,
  type Operation,
} from '../../src/operations/operation.ts';

const log: string[] = [];

/** An operation that tells what was asked of it, and in which order. */
const recorded = (more: Partial<Pick<Operation, 'access' | 'run' | 'follow'>> = {}): Operation => ({
  ...defineOperation({
    name: 'test.recorded',
    summary: 'Record',
    access: 'decide',
    input: z.object({
      limit: z.int().max(10).default(5),
      kind: z.string().refine(() => {
        log.push('input');
        return true;
      }),
    }),
    output: z.object({ limit: z.int() }),
    errors: [],
    http: { method: 'POST', path: '/recorded' },
    cli: { words: 'recorded', examples: ['reeve recorded'] },
    run: async (_context, { limit }) => {
      log.push('run');
      return { limit };
    },
  }),
  ...more,
});

function aContext(access: readonly Access[] = Object.keys(ACCESS) as Access[]): Context {
  log.length = 0;
  const explain = (error: unknown) =>
    error instanceof ReeveError
      ? error
      : String(error).includes('ECONN')
        ? new ReeveError('REDIS_UNAVAILABLE', { address: 'x', problem: 'y' })
        : undefined;
  return {
    // Only what invoke itself asks of the rooms.
    rooms: { explain } as Context['rooms'],
    caller: { id: 'ann', access: new Set(access) },
    signal: new AbortController().signal,
    operations: [],
  };
}

describe('invoking an operation', () => {
  test('asks for the right first, then looks at the input, then runs', async () => {
    expect(await invoke(recorded(), aContext(), { kind: 'x' })).toEqual({ limit: 5 });
    expect(log).toEqual(['input', 'run']);
  });

  test('by someone without the right is refused before the input is even looked at', async () => {
    await expect(invoke(recorded(), aContext(['read', 'work']), { kind: 5, junk: true })).rejects.toMatchObject({
      code: 'DENIED',
      message: expect.stringMatching(/^ann may not do this: .*"decide"/),
    });
    expect(log).toEqual([]);
  });

  test('that is open needs no right', async () => {
    await expect(invoke(recorded({ access: 'open' }), aContext([]), { kind: 'x' })).resolves.toEqual({ limit: 5 });
  });

  test.each([
    [{}, 'kind'],
    [{ kind: 'x', limit: 11 }, 'limit'],
    [{ kind: 'x', limit: '3' }, 'limit'],
    [{ kind: 'x', limti: 3 }, 'limti'],
    ['text', 'object'],
    [null, 'object'],
  ])('with the input %j is refused, naming what is wrong', async (input, named) => {
    await expect(invoke(recorded(), aContext(), input)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining(named),
      next: expect.stringContaining('reeve schema recorded'),
    });
    expect(log).not.toContain('run');
  });

  test('names all that is wrong at once', async () => {
    await expect(invoke(recorded(), aContext(), { kind: 5, limit: 11 })).rejects.toMatchObject({
      message: expect.stringMatching(/(limit.*kind|kind.*limit)/),
    });
  });

  test('that answers out of its own form is an unforeseen failure, and the answer stays inside', async () => {
    const broken = recorded({ run: async () => ({ limit: 'secret' }) });
    const failure: unknown = await invoke(broken, aContext(), { kind: 'x' }).catch((error: unknown) => error);

    expect(failure).toMatchObject({ code: 'INTERNAL', cause: expect.any(z.ZodError) });
    expect(String(failure)).not.toContain('secret');
  });

  test('gives out no more than its form says', async () => {
    const chatty = recorded({ run: async () => ({ limit: 1, password: 'secret' }) });

    expect(await invoke(chatty, aContext(), { kind: 'x' })).toEqual({ limit: 1 });
  });

  test('that fails in Redis says so with the code of that failure', async () => {
    const failing = recorded({ run: async () => Promise.reject(new Error('ECONNREFUSED')) });

    await expect(invoke(failing, aContext(), { kind: 'x' })).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
  });
});

describe('following an operation', () => {
  const endless = recorded({ follow: async function* () {} });

  test('is refused at once, like invoking it', () => {
    expect(() => follow(endless, aContext(['read']), { kind: 'x' })).toThrowError(
      expect.objectContaining({ code: 'DENIED' }),
    );
    expect(() => follow(endless, aContext(), { limit: 1 })).toThrowError(
      expect.objectContaining({ code: 'INVALID_INPUT' }),
    );
  });

  test('is not possible where nothing goes on', () => {
    expect(follow(recorded(), aContext(), { kind: 'x' })).toBeUndefined();
    expect(follow(endless, aContext(), { kind: 'x' })).toBeDefined();
  });
});
