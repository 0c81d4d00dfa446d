import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ReeveError } from '../../src/errors.ts';
import {
  adeTaskId,
  approvalId,
  decodeId,
  encodeId,
  ID_RULES,
  type IdKind,
  type IdRule,
  idSchema,
  isId,
  parseId,
  RESERVED_IDS,
  RESERVED_PROJECTS,
  splitAdeTaskId,
} from '../../src/redis/ids.ts';

const KINDS = Object.keys(ID_RULES) as IdKind[];
const rule = (kind: IdKind): IdRule => ID_RULES[kind];
const text = fc.string({ minLength: 1, maxLength: 30, unit: 'binary' }).filter((raw) => !/\p{Cc}/u.test(raw));

describe('ids', () => {
  test.each(['TASK-001', '550e8400-e29b-41d4-a716-446655440000', 'a', '1', 'web.TASK-001', 'a_b.c-d', 'a'.repeat(128)])(
    '%s names a task',
    (id) => expect(parseId('task', id)).toBe(id),
  );

  test.each([undefined, null, 1, {}, ['a'], 'a'.repeat(129), '_a', 'a:b', 'a{b}', 'a\n', 'é', 'index'])(
    '%j does not',
    (id) => expect(() => parseId('task', id)).toThrow(ReeveError),
  );

  test('an asset id has no dots', () => {
    expect(isId('asset', 'google_search')).toBe(true);
    expect(isId('asset', 'google.search')).toBe(false);
  });

  test('no id of any kind can contain what parts a key', () => {
    const open = KINDS.filter((kind) => !rule(kind).words);
    const values = [':', '{', '}', '\n', ' ', '*'].flatMap((separator) => [separator, `a${separator}b`]);
    expect(open.filter((kind) => values.some((value) => isId(kind, value)))).toEqual([]);
  });

  test('a refusal says which rule, and quotes the value short and harmless', () => {
    const refuse = (value: string) => {
      try {
        return parseId('resourceType', value);
      } catch (error) {
        return error as ReeveError;
      }
    };
    expect(refuse('a\nb')).toMatchObject({ code: 'INVALID_ID', details: { kind: 'resource type', value: '"a\\nb"' } });
    expect((refuse(`${'x'.repeat(10_000)}:`) as ReeveError).message.length).toBeLessThan(300);
  });
});

describe('reserved words', () => {
  // A new row may reserve a word that people already use as an id. This list makes that visible.
  test('are what the table makes them, those of the house, and names of properties', () => {
    const property = new Set(['prototype', ...Object.getOwnPropertyNames(Object.prototype)]);
    const others = (words: ReadonlySet<string>) => [...words].filter((word) => !property.has(word)).sort();
    expect(others(RESERVED_IDS)).toEqual(['deadlock', 'global', 'index', 'queue', 'registry', 'waitfor']);
    expect(others(RESERVED_PROJECTS)).toEqual(['ade', 'asset', 'project', 'task']);
  });

  test('are refused by name and by schema alike', () => {
    for (const word of RESERVED_IDS) {
      expect(isId('task', word)).toBe(false);
      expect(idSchema('task').safeParse(word).success).toBe(false);
    }
  });
});

describe('encoding', () => {
  test.each([
    ['prod-db-01', 'prod-db-01'],
    ['src/app.ts', 'src%2Fapp.ts'],
    ['.env', '%2Eenv'],
    ['a:b', 'a%3Ab'],
    ['{x}', '%7Bx%7D'],
    ['100%', '100%25'],
    ["it's (new)!*~", 'it%27s%20%28new%29%21%2A%7E'],
    ['é', '%C3%A9'],
    ['🙂', '%F0%9F%99%82'],
    ['index', 'index'],
    ['..', '%2E.'],
  ])('%s becomes %s', (raw, encoded) => {
    expect(encodeId('resource', raw)).toBe(encoded);
    expect(decodeId(encodeId('resource', raw))).toBe(raw);
  });

  test('comes back as it was, whatever the text, so no two texts share a key', () => {
    fc.assert(
      fc.property(text, (raw) => {
        const id = encodeId('tag', raw);
        expect(isId('tag', id)).toBe(true);
        expect(decodeId(id)).toBe(raw);
      }),
    );
  });

  test.each(['%2f', '%41', '%', '%G0', '%C3', '%00', '%0A', '%ED%A0%80', 'a%2', '.env'])('%s is no encoded id', (id) =>
    expect(isId('resource', id)).toBe(false),
  );

  test.each(['', 'a\nb', 'a\0', '\u007f', '\ud800', 'x'.repeat(1025), 'é'.repeat(200)])(
    '%j has no encoded form',
    (raw) => expect(() => encodeId(raw.startsWith('é') ? 'tag' : 'resource', raw)).toThrow(ReeveError),
  );
});

describe('schemas', () => {
  test('accept what the builders accept', () => {
    for (const kind of KINDS.filter((kind) => !rule(kind).encoded)) {
      const schema = idSchema(kind);
      const values = fc.oneof(fc.string(), fc.stringMatching(new RegExp(`^(?:${rule(kind).form})$`)));
      const agree = fc.property(values, (value) => {
        expect(schema.safeParse(value).success).toBe(isId(kind, value));
      });
      fc.assert(agree, { numRuns: 50 });
    }
  });

  test('encode what people write', () => {
    expect(idSchema('resource').parse('src/app.ts')).toBe('src%2Fapp.ts');
    expect(idSchema('resource').safeParse('a\nb').success).toBe(false);
    expect(idSchema('resource').safeParse('').success).toBe(false);
  });

  test('tell their form in a JSON Schema', () => {
    expect(z.toJSONSchema(idSchema('task'))).toMatchObject({ type: 'string', pattern: `^(?:${rule('task').form})$` });
    expect(z.toJSONSchema(idSchema('category'))).toMatchObject({ enum: ['tool', 'prompt', 'skill'] });
    expect(z.toJSONSchema(idSchema('resource'), { io: 'input' })).toMatchObject({ type: 'string' });
  });
});

describe('composed ids', () => {
  test('a task of the default project keeps its id, one of another project carries its name', () => {
    expect(adeTaskId('odyssey', 'TASK-001')).toBe('TASK-001');
    expect(adeTaskId('web', 'TASK-001')).toBe('web.TASK-001');
    expect(() => adeTaskId('a.b', 'TASK-001')).toThrow(ReeveError);
    expect(() => adeTaskId('ade', 'TASK-001')).toThrow(ReeveError);
    expect(() => adeTaskId('web', 'x'.repeat(128))).toThrow(ReeveError);
  });

  test('splitting finds the project again', () => {
    expect(splitAdeTaskId('web.v1.2', ['odyssey', 'web'])).toEqual({ project: 'web', task: 'v1.2' });
    expect(splitAdeTaskId('TASK-001', ['odyssey', 'web'])).toEqual({ project: 'odyssey', task: 'TASK-001' });
    expect(splitAdeTaskId('v1.2', ['odyssey', 'web'])).toEqual({ project: 'odyssey', task: 'v1.2' });
  });

  test('an approval id names its task', () => {
    expect(approvalId('TASK-001', 3)).toBe('TASK-001.3');
    expect(approvalId('x'.repeat(128), 999_999_999)).toHaveLength(138);
    expect(() => approvalId('TASK:1', 1)).toThrow(ReeveError);
    expect(() => approvalId('TASK-001', -1)).toThrow(ReeveError);
    expect(() => approvalId('TASK-001', 1.5)).toThrow(ReeveError);
  });
});
