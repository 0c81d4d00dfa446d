import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Caller } from '../../src/identity/caller.ts';
import {
  ACCESS_NAMES,
  type Access,
  PERMISSIONS,
  ROLE_NAMES,
  type Role,
  rightsOf,
} from '../../src/identity/permissions.ts';
import { operations } from '../../src/operations/index.ts';
import { type Context, defineOperation, invoke, type Operation } from '../../src/operations/operation.ts';
import type { Rooms } from '../../src/operations/rooms.ts';

/** The matrix as the approval architecture prints it: action, then author, reviewer, admin, system. */
const PRESCRIBED: readonly [Access, boolean, boolean, boolean, boolean][] = [
  ['create', true, false, true, false],
  ['submit', true, false, true, false],
  ['decide', false, true, true, false],
  ['force', false, false, true, false],
  ['cancel', true, false, true, true],
  ['override', false, false, true, false],
  ['audit', true, true, true, true],
];

test.each(PRESCRIBED)('%s is granted as prescribed', (access, author, reviewer, admin, system) => {
  const row = PERMISSIONS[access];
  expect([row.author, row.reviewer, row.admin, row.system].map((grant) => grant === 'yes')).toEqual([
    author,
    reviewer,
    admin,
    system,
  ]);
});

/** What an operation answers to a caller that gives it nonsense: refused before or after the question whether it may. */
async function verdict(operation: Operation, caller: Caller, raw: unknown = { no_such_input: true }): Promise<string> {
  const context: Context = { rooms: {} as Rooms, caller, signal: AbortSignal.abort(), operations: [] };
  return invoke(operation, context, raw).then(
    () => 'answered',
    (error: { code: string }) => error.code,
  );
}

const as = (role: Role, scopes: readonly Access[] = []): Caller => ({
  id: 'ann',
  roles: [role],
  ...rightsOf([role], scopes),
});

describe.each(ROLE_NAMES)('a caller that is %s', (role) => {
  test.each(operations.map((operation) => [operation.name, operation] as const))('and %s', async (_, operation) => {
    const isGranted = PERMISSIONS[operation.access][role] !== 'no';
    expect(await verdict(operation, as(role))).toBe(isGranted ? 'INVALID_INPUT' : 'DENIED');
  });

  test.each(ACCESS_NAMES.filter((access) => access !== 'open'))('may no more with a token narrowed to %s', (scope) => {
    const { access, own } = rightsOf([role], [scope]);
    const grant = PERMISSIONS[scope][role];
    expect([...access, ...own].toSorted()).toEqual(grant === 'no' ? ['open'] : ['open', scope].toSorted());
  });
});

test('a caller without a role may ask nothing but what is open to anyone', async () => {
  const nobody: Caller = { id: 'nobody', roles: [], ...rightsOf([]), access: new Set(['open']) };
  for (const operation of operations) {
    expect(await verdict(operation, nobody)).toBe(operation.access === 'open' ? 'INVALID_INPUT' : 'DENIED');
  }
});

describe('what an agent may do only as itself', () => {
  const own = operations.filter(({ access }) => PERMISSIONS[access].agent === 'own');

  test.each(own.map((operation) => [operation.name, operation] as const))(
    '%s says for which agent it is',
    (_, { input }) => {
      expect(input.shape.agent, 'an input named agent').toBeDefined();
    },
  );

  const beat = defineOperation({
    name: 'test.beat',
    summary: 'Beat',
    access: 'work',
    input: z.object({ agent: z.string() }),
    output: z.object({ agent: z.string() }),
    errors: [],
    http: { method: 'POST', path: '/beat' },
    cli: { words: 'beat it', examples: ['reeve beat it'] },
    run: async (_, { agent }) => ({ agent }),
  });

  test('is done for itself and refused for another', async () => {
    expect(await verdict(beat, as('agent'), { agent: 'ann' })).toBe('answered');
    expect(await verdict(beat, as('agent'), {})).toBe('answered');
    expect(await verdict(beat, as('admin'), {})).toBe('INVALID_INPUT');
    expect(await verdict(beat, as('agent'), { agent: 'ben' })).toBe('DENIED');
    expect(await verdict(beat, as('agent'), { agent: 'Ann' })).toBe('DENIED');
    expect(await verdict(beat, as('admin'), { agent: 'ben' })).toBe('answered');
  });
});
