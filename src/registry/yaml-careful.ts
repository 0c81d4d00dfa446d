import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
} from 'yaml';
import { placeIn } from './manifest-text.ts';
import type { Problem } from './path-record.ts';

export const MAX_DEPTH = 64;

/** A document with its places, so that whatever is wrong with its values can be pointed at. */
export interface Careful {
  readonly value: unknown;
  /** Where the value at this path stands; where there is none, its nearest parent. */
  readonly place: (path: readonly PropertyKey[]) => { line: number; column: number };
}

/** Reads any YAML, and says exactly what is wrong and where. */
export function readCarefully(text: string): Careful | Problem {
  const tooDeep = deepPlace(text);
  if (tooDeep !== undefined) return depthProblem(placeIn(text, tooDeep));
  const lines = new LineCounter();
  let documents: ReturnType<typeof parseAllDocuments>;
  try {
    documents = parseAllDocuments(text, {
      version: '1.2',
      schema: 'core',
      merge: false,
      uniqueKeys: true,
      stringKeys: true,
      prettyErrors: false,
      logLevel: 'silent',
      lineCounter: lines,
    });
  } catch (error) {
    if (error instanceof RangeError) return depthProblem({ line: 1, column: 1 });
    throw error;
  }
  const [document, ...more] = documents;
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (!document) return { code: 'EMPTY', message: 'the file is empty', line: 1, column: 1 };
  const syntax = documents.flatMap(({ errors }) => errors).toSorted((a, b) => a.pos[0] - b.pos[0])[0];
  if (syntax) return syntaxProblem(text, syntax, at(syntax.pos[0]));
  if (more.length > 0) {
    const offset = more[0]?.range?.[0] ?? 0;
    const message = 'the file holds more than one document';
    return { code: 'MULTI_DOCUMENT', message, hint: 'Give each asset a file of its own.', ...at(offset) };
  }
  const unwanted = firstUnwanted(document);
  if (unwanted) {
    const { node, ...problem } = unwanted;
    return { ...problem, ...at(node.range?.[0] ?? 0) };
  }
  if (document.contents === null) return { code: 'EMPTY', message: 'the file holds no value', line: 1, column: 1 };
  return { value: document.toJS({ maxAliasCount: 0 }), place: (path) => at(offsetOf(document, path)) };
}

const depthProblem = (place: { line: number; column: number }): Problem => ({
  code: 'TOO_DEEP',
  message: `values are nested more than ${MAX_DEPTH} deep`,
  ...place,
});

/** Where brackets or dashes pile up beyond reason: found before a parser recurses into them. Text may hold some, too. */
function deepPlace(text: string): number | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === OPEN_LIST || character === OPEN_MAP) depth++;
    else if (character === CLOSE_LIST || character === CLOSE_MAP) depth--;
    if (depth > 4 * MAX_DEPTH) return at;
  }
  return /(?:[-?:] {1,8}){65}/.exec(text)?.index;
}
const [OPEN_LIST, CLOSE_LIST, OPEN_MAP, CLOSE_MAP] = [0x5b, 0x5d, 0x7b, 0x7d];

const HINTS: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'Indent with spaces.',
  DUPLICATE_KEY: 'Keep one of the two.',
  BAD_INDENT: 'Line it up with its neighbours.',
  MULTILINE_IMPLICIT_KEY: 'Quote the text, or give it a line of its own.',
};

interface Syntax {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly [number, number];
}

function syntaxProblem(text: string, { code, message, pos }: Syntax, place: { line: number; column: number }): Problem {
  if (code === 'DUPLICATE_KEY') {
    return { code, message: 'a key is there twice', hint: HINTS.DUPLICATE_KEY!, ...place };
  }
  const line =
    text
      .slice(text.lastIndexOf('\n', pos[0]) + 1)
      .slice(0, 300)
      .split(/\r?\n/, 1)[0] ?? '';
  const unquoted = /^\s*(?:- +)?([\w-]+): +([^"'|>[{].*: .*|[^"'|>[{].*:)$/.exec(line);
  const hint = unquoted ? `Quote the text: ${unquoted[1]}: "…"` : HINTS[code];
  return {
    code: code === 'TAB_AS_INDENT' ? 'TAB' : 'YAML_SYNTAX',
    message: unquoted
      ? `the text of ${unquoted[1]} holds a colon and is not quoted`
      : message.replace(/\s*\n[\s\S]*$/, ''),
    ...(hint && { hint }),
    ...place,
  };
}

interface Unwanted extends Problem {
  readonly node: Node;
}

/** What YAML allows and a manifest does not, in the order of the file. */
function firstUnwanted(document: Document): Unwanted | undefined {
  let found: Unwanted | undefined;
  visit(document, {
    Node: (_key, node, path) => {
      found = unwanted(node, path.filter((parent) => isCollection(parent)).length);
      return found ? visit.BREAK : undefined;
    },
    Pair: (_key, { key }) => {
      if (isScalar(key) && (key.value === '<<' || key.value === '__proto__')) {
        const merge = key.value === '<<';
        found = {
          code: merge ? 'MERGE_KEY' : 'UNSAFE_KEY',
          message: merge ? 'merge keys (<<) are not allowed' : 'the key __proto__ is not allowed',
          hint: merge ? 'Write the values out.' : 'Give it another name.',
          node: key as Node,
        };
      }
      return found ? visit.BREAK : undefined;
    },
  });
  return found;
}

function unwanted(node: Node, depth: number): Unwanted | undefined {
  if (depth > MAX_DEPTH) return { code: 'TOO_DEEP', message: `values are nested more than ${MAX_DEPTH} deep`, node };
  if (isAlias(node)) {
    return { code: 'ALIAS', message: 'aliases (*name) are not allowed', hint: 'Write the value out.', node };
  }
  if ('anchor' in node && node.anchor) {
    return { code: 'ALIAS', message: 'anchors (&name) are not allowed', hint: 'Write the value out.', node };
  }
  if (node.tag !== undefined && (node as { source?: unknown }).source !== undefined) {
    return { code: 'TAG', message: `tags (${node.tag}) are not allowed`, hint: 'Leave the tag out.', node };
  }
  if (isScalar(node) && typeof node.value === 'string' && !node.value.isWellFormed()) {
    return { code: 'LONE_SURROGATE', message: 'text holds half a character (a lone surrogate)', node };
  }
  return undefined;
}

function offsetOf(document: Document, path: readonly PropertyKey[]): number {
  for (let length = path.length; length > 0; length--) {
    const parent: unknown = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true);
    const last = path[length - 1];
    // A wrong value is shown at the value; a key without one at the key.
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(last));
      const node = (pair?.value ?? pair?.key) as Node | null | undefined;
      if (node?.range) return node.range[0];
    } else if (isCollection(parent)) {
      const node = parent.get(Number(last), true) as Node | undefined;
      if (node?.range) return node.range[0];
    }
  }
  return document.contents?.range?.[0] ?? 0;
}
