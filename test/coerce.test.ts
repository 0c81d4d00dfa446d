import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromText, type TextSchema } from '../src/coerce.ts';

describe('a text is read as what the schema wants', () => {
  test.each<[string, TextSchema, string, unknown]>([
    ['a text', { type: 'string' }, '42', '42'],
    ['an unknown form', {}, 'true', 'true'],
    ['yes', { type: 'boolean' }, 'YES', true],
    ['off', { type: 'boolean' }, 'off', false],
    ['one', { type: 'boolean' }, '1', true],
    ['an integer', { type: 'integer' }, '-7', -7],
    ['a number', { type: 'number' }, '0.25', 0.25],
    ['words with commas', { type: 'array', items: { type: 'string' } }, 'a, b,,c ', ['a', 'b', 'c']],
    ['numbers with commas', { type: 'array', items: { type: 'integer' } }, '1,2', [1, 2]],
    ['a JSON list', { type: 'array', items: { type: 'string' } }, '["a,b", "c"]', ['a,b', 'c']],
    ['a list in JSON of texts that are numbers', { type: 'array', items: { type: 'integer' } }, '["1", 2]', [1, 2]],
    ['an empty list', { type: 'array' }, '', []],
    ['an object', { type: 'object' }, '{"a": 1}', { a: 1 }],
    [
      'an object as people type it',
      { type: 'object' },
      'a=b c\nversion=1.10\ntags=["x"]',
      { a: 'b c', version: '1.10', tags: ['x'] },
    ],
    ['one of several forms', { anyOf: [{ type: 'boolean' }, { type: 'integer' }] }, '12', 12],
    ['a list or a word', { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'null' }] }, '1,2', [1, 2]],
    ['several types at once', { type: ['number', 'null'] }, '3', 3],
  ])('%s', (_, schema, text, value) => {
    expect(fromText(schema, text)).toEqual(value);
  });

  test.each<[TextSchema, string]>([
    [{ type: 'boolean' }, 'perhaps'],
    [{ type: 'integer' }, 'seven'],
    [{ type: 'number' }, ''],
    [{ type: 'number' }, ' '],
    [{ type: 'number' }, 'Infinity'],
    [{ type: 'object' }, '{broken'],
    [{ type: 'object' }, 'a=b\nand more'],
  ])('what does not fit %j is left as it is, for the schema to refuse: %j', (schema, text) => {
    expect(fromText(schema, text)).toBe(text);
  });

  test('what was written out is read back', () => {
    const schemaOf: Readonly<Record<string, TextSchema>> = {
      number: { type: 'number' },
      boolean: { type: 'boolean' },
      string: { type: 'string' },
    };
    const value = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.string());
    fc.assert(
      fc.property(value, (one) => {
        expect(fromText(schemaOf[typeof one] ?? {}, String(one))).toEqual(one === 0 ? Number(String(one)) : one);
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.string()), (list) => {
        expect(fromText({ type: 'array', items: { type: 'string' } }, JSON.stringify(list))).toEqual(list);
      }),
    );
  });

  test('no text makes it fail', () => {
    const type = fc.constantFrom('string', 'boolean', 'integer', 'number', 'array', 'object', 'null');
    fc.assert(
      fc.property(type, fc.string(), (one, text) => {
        expect(() => fromText({ type: one }, text)).not.toThrow();
      }),
    );
  });
});
