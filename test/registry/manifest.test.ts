import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { createManifestParser, MAX_MANIFEST_BYTES, type Parsed } from '../../src/registry/manifest.ts';
import { manifestSchema } from '../../src/registry/manifest-schema.ts';
import { createParsePool } from '../../src/registry/parse-pool.ts';
import { readCarefully } from '../../src/registry/yaml-careful.ts';
import { createPlainReader } from '../../src/registry/yaml-plain.ts';
import { fileOf, manifestText } from '../support/registry.ts';

const parser = createManifestParser();
const readPlain = createPlainReader();
const parse = (text: string | Uint8Array, path = 'tools/x/manifest.yaml'): Parsed => parser(fileOf(path, text));
const GOOD = `id: my_tool
version: "1.0.0"
category: tool
name: My tool
description: Does things
`;

describe('a good manifest', () => {
  test('is read with its defaults', () => {
    expect(parse(GOOD)).toMatchObject({
      outcome: 'ok',
      asset: { id: 'my_tool', version: '1.0.0', config_schema: [], permissions: [], tags: [] },
    });
  });

  test.each([
    ['a byte order mark', `\uFEFF${GOOD}`],
    ['CRLF', GOOD.replaceAll('\n', '\r\n')],
    ['a document start', `---\n${GOOD}`],
    ['a JSON Schema that refers to itself', `${GOOD}agent_specs: {function_name: f, parameters: {$ref: '#'}}\n`],
    ['comments only around it', `# first\n${GOOD}# last\n`],
  ])('is read with %s', (_name, text) => {
    expect(parse(text)).toMatchObject({ outcome: 'ok', asset: { id: 'my_tool', description: 'Does things' } });
  });

  test('gets a warning, not a refusal, for keys nobody uses and for invisible characters', () => {
    const parsed = parse(`${GOOD}colour: red\ntags: ["a\u202Eb"]\nagent_specs: {function_name: f}\n`);
    expect(parsed).toMatchObject({
      outcome: 'ok',
      warnings: [
        { code: 'UNKNOWN_KEY', line: 6 },
        { code: 'HIDDEN_TEXT', line: 7 },
      ],
    });
  });

  test('may keep limits as names or as settings', () => {
    expect(parse(`${GOOD}permissions: {network: true, timeout: 30}\n`)).toMatchObject({
      outcome: 'ok',
      asset: { permissions: { network: true, timeout: 30 } },
    });
  });
});

describe('a bad manifest is refused with code, line and hint:', () => {
  const deep = `${GOOD}agent_specs:\n  parameters: ${'{a: '.repeat(200)}1${'}'.repeat(200)}\n`;
  test.each<[string, string | Uint8Array, string, number?, RegExp?]>([
    [
      'an unquoted colon in the description',
      GOOD.replace('Does things', 'Does: things'),
      'YAML_SYNTAX',
      5,
      /Quote the text/,
    ],
    ['no id', GOOD.replace(/id: my_tool\n/, ''), 'MISSING_FIELD', 1, /id: my_tool/],
    ['an id with a colon', GOOD.replace('my_tool', '"a:b"'), 'BAD_ID', 1],
    ['an id that is a pattern', GOOD.replace('my_tool', '"*"'), 'BAD_ID', 1],
    ['an id with a line break', GOOD.replace('my_tool', '"a\\n"'), 'BAD_ID', 1],
    ['an id with a Cyrillic letter', GOOD.replace('my_tool', 'gооgle'), 'BAD_ID', 1],
    ['an id that is a property of every object', GOOD.replace('my_tool', 'constructor'), 'BAD_ID', 1],
    ['a version that is a number', GOOD.replace('"1.0.0"', '1.10'), 'NOT_TEXT', 2, /Quote it/],
    ['a version of two parts', GOOD.replace('"1.0.0"', '"1.0"'), 'BAD_VERSION', 2],
    ['an unknown category', GOOD.replace('category: tool', 'category: tools'), 'BAD_FIELD', 3],
    [
      "a function that is called as one of reeve's own tools",
      `${GOOD}agent_specs: {function_name: Claim-Task}\n`,
      'BAD_FIELD',
      6,
    ],
    ['an unknown language', `${GOOD}runtime: {language: cobol}\n`, 'BAD_FIELD', 6],
    ['an entry outside its folder', `${GOOD}runtime: {language: python, entry: ../../x.py}\n`, 'BAD_FIELD', 6],
    ['an absolute entry', `${GOOD}runtime: {language: python, entry: /etc/passwd}\n`, 'BAD_FIELD', 6],
    ['a select without choices', `${GOOD}config_schema: [{name: a, type: select}]\n`, 'MISSING_FIELD', 6],
    [
      'a default that is no choice',
      `${GOOD}config_schema: [{name: a, type: select, options: [x], default: y}]\n`,
      'BAD_FIELD',
      6,
    ],
    ['a secret with a default', `${GOOD}config_schema: [{name: a, type: secret, default: hunter2}]\n`, 'BAD_FIELD', 6],
    [
      'parameters that are no JSON Schema',
      `${GOOD}agent_specs:\n  function_name: f\n  parameters:\n    type: objekt\n`,
      'BAD_PARAMETERS',
      9,
    ],
    ['a key twice', `${GOOD}name: again\n`, 'DUPLICATE_KEY', 6],
    ['a tab', `${GOOD}runtime:\n\tlanguage: none\n`, 'TAB', 7, /spaces/],
    ['an alias', `${GOOD}tags: [&a x, *a]\n`, 'ALIAS', 6],
    ['a merge key', `${GOOD}runtime:\n  <<: {language: none}\n`, 'MERGE_KEY', 7],
    ['the key __proto__', `${GOOD}agent_specs:\n  __proto__: {polluted: true}\n`, 'UNSAFE_KEY', 7],
    ['a tag', `${GOOD}tags: [!!binary aGk=]\n`, 'TAG', 6],
    ['two documents', `${GOOD}---\n${GOOD}`, 'MULTI_DOCUMENT', 6],
    ['nothing in it', '', 'EMPTY', 1],
    ['only comments', '# nothing\n', 'EMPTY', 1],
    ['a list', '- a\n- b\n', 'NOT_A_MAPPING', 1],
    ['a plain text', 'hello\n', 'NOT_A_MAPPING', 1],
    ['UTF-16, big end first', Buffer.from(`\uFEFF${GOOD}`, 'utf16le').swap16(), 'UTF16', 1],
    ['old line ends', GOOD.replaceAll('\n', '\r'), 'YAML_SYNTAX', 1],
    ['a list of settings that is none', `${GOOD}config_schema: {a: 1}\n`, 'BAD_FIELD', 6],
    ['UTF-16', Buffer.from(`\uFEFF${GOOD}`, 'utf16le'), 'UTF16', 1],
    [
      'bytes that are not UTF-8',
      Buffer.concat([Buffer.from('id: a\nname: '), Buffer.from([0xc3, 0x28])]),
      'NOT_UTF8',
      2,
    ],
    ['a NUL', `${GOOD}author: "a\0b"\n`, 'CONTROL_CHARACTER', 6],
    ['half a surrogate pair', `${GOOD}author: "\\ud800"\n`, 'LONE_SURROGATE', 6],
    ['a Git LFS pointer', 'version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1\n', 'LFS_POINTER', 1],
    ['values nested too deep', deep, 'TOO_DEEP', 7],
    ['more bytes than a manifest may have', `${GOOD}#${'x'.repeat(MAX_MANIFEST_BYTES)}`, 'TOO_LARGE'],
  ])('%s', (_name, text, code, line, hint) => {
    const parsed = parse(text);
    expect(parsed).toMatchObject({ outcome: 'bad', code, ...(line !== undefined && { line }) });
    expect(String('hint' in parsed && parsed.hint)).toMatch(hint ?? /(?:)/);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe('hostile files', () => {
  test.each([
    [
      'nested aliases',
      `a: &a [x,x]\n${Array.from({ length: 30 }, (_, n) => `b${n}: &b${n} [*a,*a,*a,*a]`).join('\n')}\n`,
    ],
    ['half a million brackets', '['.repeat(500_000)],
    ['half a million dashes', '- '.repeat(250_000)],
    ['deep braces with quotes', '{"a":'.repeat(80_000)],
    ['a hundred thousand blank lines before the end', `${GOOD}${'\n'.repeat(100_000)}id: other\n`],
  ])('%s are refused without harm', (_name, text) => {
    expect(parse(text)).toMatchObject({ outcome: 'bad' });
  });

  test('a file of any bytes is answered, never thrown at', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(['ok', 'bad', 'skipped']).toContain(parse(bytes).outcome);
      }),
    );
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (tail) => {
        expect(['ok', 'bad']).toContain(parse(GOOD + tail).outcome);
      }),
    );
  });
});

describe('other YAML files among the assets', () => {
  test('are skipped when they have no id, and refused when they are broken', () => {
    expect(parse('foo: bar\n', 'tools/x/values.yaml')).toMatchObject({ outcome: 'skipped' });
    expect(parse('- a\n', 'tools/x/list.yml')).toMatchObject({ outcome: 'skipped' });
    expect(parse('foo: [\n', 'tools/x/values.yaml')).toMatchObject({ outcome: 'bad' });
    expect(parse(GOOD, 'tools/search/google.yaml')).toMatchObject({ outcome: 'ok' });
  });
});

describe('the quick way and the careful way', () => {
  const scalar = fc.oneof(
    fc.string({ maxLength: 20 }),
    fc.string({ unit: 'binary', maxLength: 10 }),
    fc.constantFrom(
      'yes',
      'no',
      'on',
      '1.10',
      '0o7',
      '0x1f',
      '1e3',
      '.inf',
      'null',
      '~',
      '2024-01-01',
      '- a',
      '# x',
      'a: b',
      '',
      ' x ',
      '&a',
      '*a',
      '!t',
      '%d',
      '@x',
      '`',
    ),
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), tie('tree'), { maxKeys: 4 }),
    ),
  }));

  /** What both say, where the quick way says something. What the careful way refuses the quick way must not have accepted. */
  const saying = (text: string): [quick: string, careful: string] => {
    const plain = readPlain(text);
    if (plain === undefined) return ['', ''];
    const careful = readCarefully(text);
    return [JSON.stringify(plain), 'code' in careful ? careful.code : JSON.stringify(careful.value)];
  };

  test('agree on whatever a YAML writer writes', () => {
    fc.assert(
      fc.property(tree, fc.constantFrom('BLOCK_LITERAL', 'PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE'), (value, style) => {
        const [quick, careful] = saying(stringify({ value }, { defaultStringType: style, lineWidth: 40 }));
        expect(quick).toBe(careful);
      }),
      { numRuns: 1500 },
    );
  });

  test('agree on files put together from pieces that YAML knows', () => {
    const pieces = [
      'a',
      'b: ',
      'c:\n',
      '  ',
      '\n',
      '- ',
      '"x"',
      "'y'",
      '[',
      ']',
      '{',
      '}',
      ',',
      ': ',
      '#z',
      ' #z',
      '|\n',
      '>-\n',
      '1',
      '1.0',
      'true',
      '?',
      '!',
      '&a',
      '*a',
      '---',
      '...',
      '%',
      '\t',
      '\r\n',
      'é',
      '数',
      '\\',
      '"\\u00e9"',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 14 }), (parts) => {
        const [quick, careful] = saying(parts.join(''));
        expect(quick).toBe(careful);
      }),
      { numRuns: 4000 },
    );
  });
});

describe('many files', () => {
  const pool = createParsePool({ threads: 2 });
  afterAll(() => pool.close());

  test('come back in their order, large ones from threads, small ones from here', async () => {
    const files = Array.from({ length: 60 }, (_, at) => {
      const padding = at % 7 === 0 ? `#${'x'.repeat(40_000)}\n` : '';
      return fileOf(`tools/t${at}/manifest.yaml`, at % 5 === 0 ? 'id: [' : manifestText(`t${at}`) + padding);
    });
    const seen: number[] = [];
    const parsed = await pool.parse(files, { progress: (done) => seen.push(done) });
    expect(parsed.map((one) => (one.outcome === 'ok' ? one.asset.id : one.outcome))).toEqual(
      files.map((_, at) => (at % 5 === 0 ? 'bad' : `t${at}`)),
    );
    expect(seen.at(-1)).toBe(60);
  });
});

test('the JSON Schema for editors lies in schemas/ as it is made', async () => {
  const file = new URL('../../schemas/manifest.schema.json', import.meta.url);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(JSON.parse(JSON.stringify(manifestSchema())));
});

test('the JSON Schema for editors accepts what the parser accepts and refuses a wrong category', () => {
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(manifestSchema());
  const manifest = { id: 'a', version: '1.0.0', category: 'tool', name: 'A', description: 'x' };
  expect(validate(manifest)).toBe(true);
  expect(validate({ ...manifest, category: 'tools' })).toBe(false);
  expect(validate({ ...manifest, version: '1.0' })).toBe(false);
});
