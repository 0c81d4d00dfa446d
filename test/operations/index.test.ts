import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { makeManifest } from '../../src/cli/manifest.ts';
import { buildProgram, type Typed } from '../../src/cli/program.ts';
import { ERRORS } from '../../src/error-catalogue.ts';
import { routePath } from '../../src/http/router.ts';
import { MCP_TOOLS } from '../../src/mcp-tools.ts';
import { operations } from '../../src/operations/index.ts';
import { readSources } from '../support/source.ts';

const repeated = (values: readonly string[]) => values.filter((value, at) => values.indexOf(value) !== at);

/** The words that a shell would hand over: what is in quotes is one, and pipes and files are its own affair. */
const shellWords = (line: string) =>
  [...line.split(/ [|<>] /)[0]!.matchAll(/"([^"]*)"|'([^']*)'|\S+/g)].map(([all, one, two]) => one ?? two ?? all);

describe('the list of operations', () => {
  test('has every one that is defined: none is without a route, a command and a page', () => {
    const defined = readSources('ts')
      .filter(({ path }) => path.startsWith('operations/'))
      .flatMap(({ text }) => [...text.matchAll(/\bdefineOperation\(\{\s*name: '([^']+)'/g)].map(([, name]) => name));
    const names = new Set(operations.map(({ name }) => name));
    expect(defined).toContain('delegation.set');
    expect(defined.filter((name) => !names.has(name!))).toEqual([]);
  });

  test('has no name, route, command or tool twice', () => {
    expect(repeated(operations.map(({ name }) => name))).toEqual([]);
    expect(repeated(operations.map((one) => `${one.http.method} ${routePath(one)}`))).toEqual([]);
    expect(repeated(operations.map(({ cli }) => cli.words))).toEqual([]);
    expect(repeated(operations.flatMap(({ mcp }) => (mcp ? [mcp.tool] : [])))).toEqual([]);
  });

  test('has no tool whose name an asset could take', () => {
    expect(operations.flatMap(({ mcp }) => (mcp && !MCP_TOOLS.includes(mcp.tool) ? [mcp.tool] : []))).toEqual([]);
  });

  test('has no command that could be another with an argument', () => {
    const taking = operations.filter(({ cli }) => cli.args?.length);
    const begins = (one: string) => operations.some(({ cli }) => cli.words.startsWith(`${one} `));
    expect(taking.map(({ cli }) => cli.words).filter(begins)).toEqual([]);
  });
});

describe.each(operations.map((operation) => [operation.name, operation] as const))('%s', (_, operation) => {
  const { name, summary, cli, http, errors, input } = operation;

  test('is named and described in the common form', () => {
    expect(name).toMatch(/^[a-z]+(\.[a-z_]+)+$/);
    expect(summary).toMatch(/^[A-Z][^\n]{5,90}[^.\n]$/);
    expect(http.path).toMatch(/^\/{1,2}[a-z]/);
    expect(cli.words).toMatch(/^[a-z-]+( [a-z][a-z0-9-]*)?$/);
    expect(errors.filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([]);
  });

  test('takes every part of its path, and every argument, from its input', () => {
    const properties = Object.keys(input.shape);
    const inPath = [...http.path.matchAll(/\{(\w+)\}/g)].map(([, part]) => part);
    expect([...inPath, ...(cli.args ?? [])].filter((part) => !properties.includes(part!))).toEqual([]);
  });

  test('has forms that can be written as JSON Schema', () => {
    expect(z.toJSONSchema(input, { io: 'input' })).toMatchObject({ type: 'object', additionalProperties: false });
    expect(z.toJSONSchema(operation.output, { io: 'output' })).toBeDefined();
  });

  test('describes every input', () => {
    const { properties = {} } = z.toJSONSchema(input, { io: 'input' });
    expect(
      Object.entries(properties).filter(([, schema]) => !(schema as { description?: string }).description),
    ).toEqual([]);
  });

  test.each(cli.examples)('works as in the example: %s', async (example) => {
    const argv = shellWords(example);
    expect(argv.shift()).toBe('reeve');
    let typed: Typed | undefined;
    const program = buildProgram(makeManifest(operations, '0.0.0'), argv, async (one) => {
      typed = one;
    });
    await program.exitOverride().parseAsync(argv, { from: 'user' });
    expect(typed?.command.words.join(' ')).toBe(cli.words);
    expect(input.safeParse(typed?.input)).toMatchObject({ success: true });
  });

  test('has an example', () => expect(cli.examples.length).toBeGreaterThan(0));
});

describe.each(operations.flatMap(({ mcp, input }) => (mcp ? [[mcp.tool, mcp, input] as const] : [])))(
  'the tool %s',
  (tool, { description }, input) => {
    test('is named and described so that any client takes it', () => {
      expect(tool).toMatch(/^[a-z][a-z0-9_]{0,63}$/);
      expect(description.length).toBeLessThanOrEqual(400);
      // The root of a tool's input must be an object itself, not a reference to one.
      expect(z.toJSONSchema(input, { io: 'input' })).toHaveProperty('properties');
    });
  },
);
