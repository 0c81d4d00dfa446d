import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { STREAM_NAMES } from '../../src/events/catalogue.ts';
import { compareIds, formatCursor, parseCursor, placeBefore } from '../../src/events/cursor.ts';

const MOST = 2n ** 64n - 1n;
const half = fc.oneof(fc.bigInt({ min: 0n, max: MOST }), fc.bigInt({ min: 0n, max: 5n }), fc.constant(MOST - 1n));
const id = fc.tuple(half, half).map(([ms, seq]) => `${ms}-${seq}`);
const cursor = fc
  .dictionary(
    fc.constantFrom(...STREAM_NAMES),
    id.filter((one) => one !== `${MOST}-${MOST}`),
    { minKeys: 1 },
  )
  .map((entries) => ({ ...entries }));

describe('a cursor', () => {
  test('read from its text is the same cursor', () => {
    fc.assert(
      fc.property(cursor, (one) => {
        expect(parseCursor(formatCursor(one))).toEqual(one);
      }),
    );
  });

  test('can stand in a URL and in a header as it is', () => {
    fc.assert(
      fc.property(cursor, (one) => {
        const text = formatCursor(one);
        expect(encodeURIComponent(text)).toBe(text);
      }),
    );
  });

  test.each([
    '',
    'nonsense',
    'system',
    'system.',
    'system.5',
    'system.5-',
    'system.-5-0',
    'system.5-0~',
    'other.5-0',
    'system.5-0,lock.6-0',
    `system.${MOST + 1n}-0`,
    `system.0-${MOST + 1n}`,
    `system.${MOST}-${MOST}`,
    'system.5-0\n',
    '__proto__.5-0',
  ])('is not made of %j', (text) => {
    expect(() => parseCursor(text)).toThrowError(expect.objectContaining({ code: 'BAD_CURSOR' }));
  });
});

describe('ids', () => {
  test('are in the order of their two numbers, however large', () => {
    fc.assert(
      fc.property(half, half, half, half, (aMs, aSeq, bMs, bSeq) => {
        const expected =
          aMs === bMs ? Number(aSeq > bSeq) - Number(aSeq < bSeq) : Number(aMs > bMs) - Number(aMs < bMs);
        expect(compareIds(`${aMs}-${aSeq}`, `${bMs}-${bSeq}`)).toBe(expected);
      }),
    );
  });

  test('have a place right before them, with nothing between', () => {
    expect(placeBefore('5-3')).toBe('5-2');
    expect(placeBefore('5-0')).toBe(`4-${MOST}`);
    expect(placeBefore('0-1')).toBe('0-0');
    fc.assert(
      fc.property(
        id.filter((one) => one !== '0-0'),
        (one) => {
          expect(compareIds(placeBefore(one), one)).toBe(-1);
        },
      ),
    );
  });
});
