import { posix } from 'node:path';
import { dotted, isNode, literal, type Node, propertyName, type SourceFile, walk } from './source.ts';

/** A part of the house: the files and folders it holds, and the other parts it may import. */
export interface Zone {
  readonly zone: string;
  readonly holds: readonly string[];
  readonly may: readonly string[];
  /** Known to the compiler only: `import type`. */
  readonly types?: readonly string[];
}

/** Names of the machine, and the only files that may use them. */
export interface Reserve {
  readonly names: readonly string[];
  readonly only: readonly string[];
}

interface Text {
  readonly path: string;
  readonly text: string;
}

/** Of several zones that hold a file, the one that says so most precisely. */
export function zoneOf(zones: readonly Zone[], path: string): Zone | undefined {
  const fits = (held: string) => (held.endsWith('/') ? path.startsWith(held) : path === held);
  const length = ({ holds }: Zone) => Math.max(...holds.filter(fits).map((held) => held.length));
  return zones.filter(({ holds }) => holds.some(fits)).toSorted((a, b) => length(b) - length(a))[0];
}

/** Imports that go where the table does not let them, and files that no zone holds. */
export function wrongImports(zones: readonly Zone[], files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const from = zoneOf(zones, file.path);
    if (!from) return [`${file.path}: belongs to no zone`];
    return file.imports.flatMap((one) => {
      if (!one.to.endsWith('.ts')) return [];
      const to = zoneOf(zones, one.to);
      const allowed = [from.zone, ...from.may, ...(one.isType ? (from.types ?? []) : [])];
      if (to && allowed.includes(to.zone)) return [];
      return [`${file.at(one)}: ${from.zone} may not import ${one.to} (${to?.zone ?? 'no zone'})`];
    });
  });
}

/** The same for Lua fragments. */
export function wrongIncludes(zones: readonly Zone[], scripts: readonly Text[]): string[] {
  return scripts.flatMap((script) => {
    const from = zoneOf(zones, script.path);
    return includesOf(script).flatMap((included) => {
      const to = zoneOf(zones, included);
      if (from && to && [from.zone, ...from.may].includes(to.zone)) return [];
      return [`${script.path}: ${from?.zone ?? 'no zone'} may not include ${included}`];
    });
  });
}

/** Circles of files that load one another; one imported when asked for counts too, for it must load as well. */
export function cycles(files: readonly SourceFile[]): string[] {
  const next = new Map(
    files.map(({ path, imports }) => [path, imports.filter(({ isType }) => !isType).map(({ to }) => to)]),
  );
  const done = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path].join(' > '));
    if (trail.includes(path) || done.has(path)) return;
    for (const to of next.get(path) ?? []) visit(to, [...trail, path]);
    done.add(path);
  };
  for (const { path } of files) visit(path, []);
  return found;
}

/** Files that only pass on what others export. */
export function barrels(allowed: readonly string[], files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => !allowed.includes(path))
    .flatMap((file) => {
      const isNamedSo = posix.basename(file.path) === 'index.ts';
      const isOne = file.body.every(({ type, source }) => type.startsWith('Export') && isNode(source));
      const whole = file.body.filter(({ type }) => type === 'ExportAllDeclaration').map((node) => file.at(node));
      return [...(isNamedSo || isOne ? [file.path] : []), ...whole].map((place) => `${place}: is a barrel`);
    });
}

export const defaultExports = (files: readonly SourceFile[]): string[] =>
  places(files, ({ type }) => type === 'ExportDefaultDeclaration', 'exports a default');

export const anyTypes = (files: readonly SourceFile[]): string[] =>
  places(files, ({ type }) => type === 'TSAnyKeyword', 'says any');

export const doubleCasts = (files: readonly SourceFile[]): string[] =>
  places(files, ({ type, expression }) => type === 'TSAsExpression' && isCastToUnknown(expression), 'casts by unknown');

/** What runs, or may change, merely because a file was imported. */
export function importTimeWork(allowed: readonly string[], files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => !allowed.includes(path))
    .flatMap((file) =>
      file.body.flatMap((statement) => {
        const inner = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
        if (!isNode(inner)) return [];
        const isState = inner.type === 'VariableDeclaration' && inner.kind !== 'const';
        if (isState) return [`${file.at(inner)}: keeps state in the module`];
        return inner.type.endsWith('Statement') ? [`${file.at(inner)}: works at import time`] : [];
      }),
    );
}

/** Uses of reserved names elsewhere: in full, taken apart (`const { env } = process`) or imported from Node. */
export function misusedNames(reserves: readonly Reserve[], files: readonly SourceFile[]): string[] {
  return files.flatMap((file) => {
    const banned = new Set(reserves.filter(({ only }) => !only.includes(file.path)).flatMap(({ names }) => names));
    return [...walk(file.body)].flatMap((node) =>
      namesUsed(node)
        .filter((name) => banned.has(name))
        .map((name) => `${file.at(node)}: uses ${name}`),
    );
  });
}

/** Lua files that no defineScript names, and fragments (_x.lua) that none includes but those offered to everyone. */
export function unreachedLua(offered: string, files: readonly SourceFile[], scripts: readonly Text[]): string[] {
  const doors = new Set(files.flatMap(scriptFiles));
  const included = new Set(scripts.flatMap(includesOf));
  const known = new Set(scripts.map(({ path }) => path));
  return [
    ...scripts.flatMap(({ path }) => {
      const isFragment = posix.basename(path).startsWith('_');
      if (isFragment) return included.has(path) || path.startsWith(offered) ? [] : [`${path}: no script includes it`];
      return doors.has(path) ? [] : [`${path}: no defineScript names it`];
    }),
    ...[...doors, ...included].filter((path) => !known.has(path)).map((path) => `${path}: named, but not there`),
  ];
}

const DOORS_OF_LUA = ['defineScript', 'functionLibrary'];

/** `new URL('./lua/x.lua', import.meta.url)` in a call of one of these. */
function scriptFiles(file: SourceFile): string[] {
  return [...walk(file.body)]
    .filter(({ type, callee }) => type === 'CallExpression' && DOORS_OF_LUA.includes(dotted(callee) ?? ''))
    .flatMap((call) => [...walk(call.arguments)])
    .filter(({ type, callee }) => type === 'NewExpression' && dotted(callee) === 'URL')
    .map((made) => literal((made.arguments as Node[])[0]) ?? '')
    .map((relative) => posix.join(posix.dirname(file.path), relative));
}

const includesOf = ({ path, text }: Text): string[] =>
  [...text.matchAll(/^--\s*@include\s+(\S+)/gm)].map(([, relative = '']) => posix.join(posix.dirname(path), relative));

/** Every name of the machine that one node uses, if any. */
function namesUsed(node: Node): string[] {
  switch (node.type) {
    case 'MemberExpression':
      return [dotted(node) ?? ''];
    case 'CallExpression':
      return isNode(node.callee) && node.callee.type === 'Identifier' ? [dotted(node.callee) ?? ''] : [];
    case 'NewExpression':
      return (node.arguments as unknown[]).length === 0 ? [`new ${dotted(node.callee)}()`] : [];
    case 'VariableDeclarator':
      return takenApart(node).map((key) => `${dotted(node.init)}.${key}`);
    case 'ImportDeclaration':
      return [`import ${literal(node.source)?.replace(/^node:/, '')}`];
    default:
      return [];
  }
}

function takenApart({ id }: Node): string[] {
  if (!isNode(id) || id.type !== 'ObjectPattern') return [];
  return (id.properties as Node[]).map(({ key, computed }) => propertyName(key, computed === true) ?? '');
}

const isCastToUnknown = (node: unknown): boolean =>
  isNode(node) &&
  node.type === 'TSAsExpression' &&
  isNode(node.typeAnnotation) &&
  node.typeAnnotation.type === 'TSUnknownKeyword';

const places = (files: readonly SourceFile[], isOne: (node: Node) => boolean, what: string): string[] =>
  files.flatMap((file) => [...walk(file.body)].filter(isOne).map((node) => `${file.at(node)}: ${what}`));
