import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PAGES } from '../scripts/docs/pages.ts';
import { ERRORS, type ErrorCode } from '../src/error-catalogue.ts';
import { EVENTS } from '../src/events/catalogue.ts';
import {
  dotted,
  isNode,
  literal,
  type Node,
  parseSource,
  propertyName,
  readSources,
  type SourceFile,
  walk,
} from './support/source.ts';

const files = readSources('ts').map(parseSource);

describe('pages made from tables', () => {
  test.each(Object.entries(PAGES))('%s is in step with its table', (path, write) => {
    expect(readFileSync(path, 'utf8') === write(), `${path} is not: run npm run docs`).toBe(true);
  });

  test('every link from page to page leads to a heading that is there', () => {
    const pages = Object.entries(PAGES).filter(([path]) => path.endsWith('.md'));
    const anchors = new Map(pages.map(([path, write]) => [path, new Set(headings(write()).map(anchor))]));
    const broken = pages.flatMap(([path, write]) =>
      linksIn(write())
        .map(([page, heading]) => [page ? posix.join(posix.dirname(path), page) : path, heading] as const)
        .filter(([page, heading]) => !anchors.has(page) || (heading && !anchors.get(page)?.has(heading)))
        .map(([page, heading]) => `${path}: ${page}#${heading}`),
    );
    expect(broken).toEqual([]);
  });

  test('every heading of a page has an anchor of its own', () => {
    const pages = Object.entries(PAGES).filter(([path]) => path.endsWith('.md'));
    const twice = pages.flatMap(([path, write]) => {
      const found = headings(write()).map(anchor);
      return found.filter((one, index) => found.indexOf(one) !== index).map((one) => `${path}#${one}`);
    });
    expect(twice).toEqual([]);
  });
});

describe('the error catalogue', () => {
  test('has a row for every code that is thrown, and throws every row', () => {
    const said = new Set(
      files
        .filter(({ path }) => path !== 'error-catalogue.ts')
        .flatMap(({ body }) => [...walk(body)].map(literal).filter((text) => text !== undefined)),
    );
    expect(Object.keys(ERRORS).filter((code) => !said.has(code))).toEqual([]);
    expect(thrown().filter(({ code }) => !(code in ERRORS))).toEqual([]);
  });

  test('is given every fact that its wording names, wherever that can be seen', () => {
    expect(thrown().filter(({ facts }) => facts !== undefined).length).toBeGreaterThan(20);
    expect(missingFacts(thrown())).toEqual([]);
    const text = `throw new ReeveError('PORT_TAKEN', { host });\nthrow new ReeveError('PORT_TAKEN', { ...where });`;
    expect(missingFacts(thrown([parseSource({ path: 'a.ts', text })]))).toEqual(['a.ts:1: PORT_TAKEN without port']);
  });
});

describe('the event catalogue', () => {
  test('has a row for every event that is appended, in TypeScript and in Lua', () => {
    const inTypeScript = files.flatMap((file) =>
      [...walk(file.body)]
        .filter(({ type, callee }) => type === 'CallExpression' && isAppend(callee))
        .map(({ arguments: given }) => literal((given as Node[])[0]))
        .filter((name) => name !== undefined),
    );
    const inLua = readSources('lua').flatMap(({ text }) =>
      [...text.matchAll(/\bemit\w*\(\s*[^,()]+(?:\([^()]*\))?,\s*'([^']+)'/g)].map(([, name = '']) => name),
    );
    expect(inTypeScript).toContain('daemon:started');
    expect([...inTypeScript, ...inLua].filter((name) => !(name in EVENTS))).toEqual([]);
  });
});

const headings = (page: string): string[] =>
  [...page.replace(/^```.*?^```/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, text = '']) => text);

/** As Markdown viewers make it of a heading. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');

const linksIn = (page: string): [string, string][] =>
  [...page.matchAll(/\]\(([^)#:]*)#?([^)]*)\)/g)].map(([, file = '', heading = '']) => [file, heading]);

interface Thrown {
  readonly code: ErrorCode;
  readonly at: string;
  /** The names of the details; undefined where they are put together elsewhere. */
  readonly facts: readonly string[] | undefined;
}

/** Every `new ReeveError('CODE', …)` whose code is written out. */
function thrown(sources: readonly SourceFile[] = files): Thrown[] {
  return sources.flatMap((file) =>
    [...walk(file.body)]
      .filter(({ type, callee }) => type === 'NewExpression' && dotted(callee) === 'ReeveError')
      .flatMap((made) => {
        const [first, details] = made.arguments as readonly (Node | undefined)[];
        const code = literal(first) as ErrorCode | undefined;
        return code === undefined ? [] : [{ code, at: file.at(made), facts: detailNames(details) }];
      }),
  );
}

const missingFacts = (errors: readonly Thrown[]): string[] =>
  errors.flatMap(({ code, facts, at }) =>
    placeholders(code)
      .filter((name) => facts && !facts.includes(name))
      .map((name) => `${at}: ${code} without ${name}`),
  );

function detailNames(details: Node | undefined): string[] | undefined {
  if (!details) return [];
  if (details.type !== 'ObjectExpression') return undefined;
  const properties = details.properties as readonly Node[];
  if (properties.some(({ type }) => type === 'SpreadElement')) return undefined;
  return properties.map(({ key, computed }) => propertyName(key, computed === true) ?? '');
}

const placeholders = (code: ErrorCode): string[] =>
  [...`${ERRORS[code].says} ${ERRORS[code].next}`.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);

const isAppend = (callee: unknown): boolean =>
  isNode(callee) && callee.type === 'MemberExpression' && propertyName(callee.property) === 'append';
