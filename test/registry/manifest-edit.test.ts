import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { createManifestParser } from '../../src/registry/manifest.ts';
import { checkedWrite, editManifest, newManifest } from '../../src/registry/manifest-edit.ts';

const TEXT = `# The tool everybody uses.
id: my_tool   # never change this

version: '1.0.0'
category: tool
name: "My tool"
description: |
  Does things.
  Slowly.
tags: [a, b]  # short
runtime:
  language: none
  # nothing to start
permissions:
  - network
`;

test('changes one value and leaves everything else as it was written', () => {
  expect(editManifest(TEXT, { version: '1.1.0' })).toBe(TEXT.replace("'1.0.0'", "'1.1.0'"));
  expect(editManifest(TEXT, { name: 'Other' })).toBe(TEXT.replace('"My tool"', '"Other"'));
});

test('changing nothing changes no byte', () => {
  expect(editManifest(TEXT, {})).toBe(TEXT);
  expect(editManifest(TEXT, { version: '1.0.0', tags: ['a', 'b'], runtime: { language: 'none' } })).toBe(TEXT);
});

test('reaches into parts, adds, and takes out', () => {
  const edited = editManifest(TEXT, {
    runtime: { language: 'python', entry: 'main.py' },
    author: 'ann',
    permissions: null,
    tags: ['a', 'b', 'c'],
  });
  expect(parseYaml(edited)).toMatchObject({
    runtime: { language: 'python', entry: 'main.py' },
    author: 'ann',
    tags: ['a', 'b', 'c'],
  });
  expect(edited).not.toContain('permissions');
  expect(edited).toContain('# The tool everybody uses.');
  expect(edited).toContain('id: my_tool   # never change this');
  expect(edited).toContain('# nothing to start');
  expect(edited).toMatch(/tags: \[\s?a, b, c\s?\]/);
});

test('keeps line ends of Windows', () => {
  const windows = TEXT.replaceAll('\n', '\r\n');
  const edited = editManifest(windows, { version: '2.0.0' });
  expect(edited.replaceAll('\r\n', '')).not.toContain('\n');
  expect(parseYaml(edited)).toMatchObject({ version: '2.0.0' });
});

test('whatever text is set is the text that is read back, and no other part moves', () => {
  const text = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
    .filter((one) => !/[\p{Cc}\u2028\u2029\uFEFF]/u.test(one));
  fc.assert(
    fc.property(text, (description) => {
      const edited = parseYaml(editManifest(TEXT, { description })) as Record<string, unknown>;
      expect(edited).toEqual({ ...(parseYaml(TEXT) as object), description });
    }),
  );
});

test('a new manifest has its keys in the usual order and is one that a sync accepts', () => {
  const text = newManifest({ name: 'A', category: 'prompt', description: 'yes: no', version: '1.0.0', id: 'a' });
  expect(text).toBe('id: a\nversion: 1.0.0\ncategory: prompt\nname: A\ndescription: "yes: no"\n');
  expect(checkedWrite(createManifestParser(), 'prompts/a/manifest.yaml', text, undefined).asset.id).toBe('a');
});

test('what a sync would refuse is refused before it is written', () => {
  const parse = createManifestParser();
  expect(() => checkedWrite(parse, 'tools/a/manifest.yaml', TEXT.replace("'1.0.0'", '1.0'), 'x')).toThrow(/version/);
  expect(() => editManifest('- a\n', { id: 'b' })).toThrow(/mapping/);
});
