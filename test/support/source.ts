import { globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { parseSync } from 'oxc-parser';

/** A node of the syntax tree: whatever has a type. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** A file of src, read as a tree. Paths are relative to src: 'redis/keys.ts'. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly body: readonly Node[];
  readonly imports: readonly Import[];
  /** 'redis/keys.ts:12', for a person to click on. */
  at(node: { readonly start: number }): string;
}

export interface Import {
  /** The file it leads to, relative to src; a package or a part of Node keeps its name. */
  readonly to: string;
  /** Gone at run time. */
  readonly isType: boolean;
  /** Loaded when it is asked for, not with the file. */
  readonly isLazy: boolean;
  readonly isReExport: boolean;
  readonly start: number;
}

const SRC = new URL('../../src/', import.meta.url).pathname;

/** Every file of src with this ending, as text. */
export const readSources = (ending: 'ts' | 'lua'): readonly { readonly path: string; readonly text: string }[] =>
  globSync(`**/*.${ending}`, { cwd: SRC })
    .toSorted()
    .map((path) => ({ path, text: readFileSync(SRC + path, 'utf8') }));

export function parseSource({ path, text }: { readonly path: string; readonly text: string }): SourceFile {
  const { program, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const statements: readonly unknown[] = program.body;
  const body = statements.filter(isNode);
  return {
    path,
    text,
    body,
    imports: importsOf(path, body),
    at: ({ start }) => `${path}:${text.slice(0, start).split('\n').length}`,
  };
}

/** Every node below, itself first, in the order of the text. */
export function* walk(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const each of value) yield* walk(each);
  if (!isNode(value)) return;
  yield value;
  for (const child of Object.values(value)) if (typeof child === 'object') yield* walk(child);
}

export const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';

/** 'process.env' of that expression; undefined of one that is no chain of names. A leading globalThis is left out. */
export function dotted(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Identifier') return String(node.name);
  if (node.type === 'ChainExpression') return dotted(node.expression);
  if (node.type !== 'MemberExpression') return undefined;
  const [object, property] = [dotted(node.object), propertyName(node.property, node.computed === true)];
  if (object === undefined || property === undefined) return undefined;
  return object === 'globalThis' ? property : `${object}.${property}`;
}

/** The text of a literal, or of a template that has no holes. */
export function literal(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node.type !== 'TemplateLiteral' || (node.expressions as unknown[]).length > 0) return undefined;
  return (node.quasis as { value: { cooked: string } }[])[0]?.value.cooked;
}

export function propertyName(key: unknown, isComputed = false): string | undefined {
  if (isNode(key) && key.type === 'Identifier' && !isComputed) return String(key.name);
  return literal(key);
}

function importsOf(path: string, body: readonly Node[]): Import[] {
  const to = (source: unknown) => {
    const name = literal(source) ?? '';
    return name.startsWith('.') ? posix.join(posix.dirname(path), name) : name;
  };
  const found: Import[] = [];
  for (const node of walk(body)) {
    const { type, source, start } = node;
    const isReExport = type.startsWith('Export');
    if (type === 'ImportExpression' && literal(source) !== undefined) {
      found.push({ to: to(source), isType: false, isLazy: true, isReExport: false, start });
    } else if (type === 'TSImportType') {
      found.push({ to: to(source ?? node.argument), isType: true, isLazy: false, isReExport: false, start });
    } else if ((type === 'ImportDeclaration' || isReExport) && isNode(source)) {
      found.push({ to: to(source), isType: isOfTypes(node), isLazy: false, isReExport, start });
    }
  }
  return found;
}

function isOfTypes(node: Node): boolean {
  if (node.importKind === 'type' || node.exportKind === 'type') return true;
  const names = (node.specifiers ?? []) as readonly Node[];
  return names.length > 0 && names.every((name) => name.importKind === 'type' || name.exportKind === 'type');
}
