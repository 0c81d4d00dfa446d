import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatLock,
  inLockOrder,
  lockIdSchema,
  lockName,
  lockSchema,
  parseLock,
} from '../../../src/coordinator/locks/lock.ts';

describe('the name of a lock', () => {
  test('is task:ID, resource:TYPE:ID or agent:ID', () => {
    expect(parseLock('task:t-1')).toEqual({ kind: 'task', id: 't-1' });
    expect(parseLock('agent:ann')).toEqual({ kind: 'agent', id: 'ann' });
    expect(parseLock('resource:database:prod-db-01')).toEqual({ kind: 'resource', type: 'database', id: 'prod-db-01' });
  });

  test('may have any text as the id of a resource', () => {
    const lock = parseLock('resource:file:src/a b.ts');
    expect(lock).toMatchObject({ id: 'src%2Fa%20b.ts' });
    expect(formatLock(lock)).toBe('resource:file:src/a b.ts');
    expect(lockName(lock)).toBe('resource:file:src%2Fa%20b.ts');
    expect(parseLock('resource:file:C:\\dir')).toMatchObject({ type: 'file', id: 'C%3A%5Cdir' });
  });

  test('reads back as the same lock, whichever way it is written', () => {
    const text = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((id) => !/\p{Cc}/u.test(id) && id.isWellFormed());
    fc.assert(
      fc.property(text, (id) => {
        const lock = parseLock(`resource:file:${id}`);
        expect(parseLock(formatLock(lock))).toEqual(lock);
        expect(parseLock(lockName(lock))).toEqual(lock);
      }),
    );
  });

  test.each([
    '',
    't-1',
    'task:',
    'task:123:queue',
    'task:a b',
    'task:a{b}',
    'task:a}b',
    'task:*',
    'task:..',
    'task:index',
    'task:__proto__',
    'task:constructor',
    'task:a\r\nb',
    'task:a\0b',
    'task:🙂',
    `task:${'x'.repeat(10_000)}`,
    "task:'] redis.call('FLUSHALL",
    'agent:queue',
    'agent:ann:capacity',
    'resource:db',
    'resource:db:',
    'resource:d b:x',
    'resource::x',
    'resource:db:a\nb',
    `resource:db:${'x'.repeat(10_000)}`,
    'resource:db:\ud800',
    'user:ann',
    'TASK:t-1',
  ])('is refused before Redis sees it: %j', (text) => {
    expect(() => parseLock(text)).toThrow(expect.objectContaining({ row: expect.objectContaining({ status: 400 }) }));
    expect(lockSchema.safeParse(text).success).toBe(false);
  });
});

test.each(['', 'a b', 'a|b', '!x', '"', 'x'.repeat(129), 'ä', '-a'])('the lock_id %j is refused', (text) => {
  expect(lockIdSchema.safeParse(text).success).toBe(false);
});

test('several locks are taken in one order: capacity, resources by name, tasks last', () => {
  const names = ['task:a', 'resource:db:b', 'agent:z', 'resource:db:a', 'task:B'];
  expect(names.map(parseLock).sort(inLockOrder).map(lockName)).toEqual([
    'agent:z',
    'resource:db:a',
    'resource:db:b',
    'task:B',
    'task:a',
  ]);
});
