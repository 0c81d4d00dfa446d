import { Document, isCollection, isMap, isScalar, type Node, parseDocument, Scalar, YAMLMap } from 'yaml';
import { ReeveError } from '../errors.ts';
import { type Asset, blobSha } from './asset.ts';
import type { ParseManifest } from './manifest.ts';
import { MANIFEST_KEYS } from './manifest-schema.ts';

/** One file to write (`bytes`) or delete (none), and what it replaces: the optimistic lock of a write-back. */
export interface ManifestWrite {
  readonly path: string;
  readonly bytes?: Uint8Array;
  /** Blob SHA that must still be at the path; undefined: nothing may be there. */
  readonly base?: string | undefined;
}

/** Parts of a manifest to set; null takes one out. */
export type ManifestChanges = Readonly<Record<string, unknown>>;

/**
 * Changes values of a manifest and leaves the rest as its author wrote it, byte for byte: comments, order of keys, quotes,
 * blank lines. A text in one line is replaced where it stands; a part that changes its shape is written anew, with the
 * comments in it; a new part comes last.
 */
export function editManifest(text: string, changes: ManifestChanges): string {
  const unix = text.replaceAll('\r\n', '\n');
  const document = parseDocument(unix, FORM) as Document.Parsed;
  if (!isMap(document.contents)) throw new ReeveError('ASSET_INVALID', { problem: 'the manifest is not a mapping' });
  const splices = Object.entries(changes).flatMap(([key, value]) => spliceOf(document, unix, key, value) ?? []);
  const edited = splices
    .toSorted((a, b) => b.from - a.from)
    .reduce((so, { from, to, put }) => so.slice(0, from) + put + so.slice(to), unix);
  return text.includes('\r\n') ? edited.replaceAll('\n', '\r\n') : edited;
}

/** A new manifest, keys in the order of the schema. */
export function newManifest(manifest: Readonly<Record<string, unknown>>): string {
  const known = MANIFEST_KEYS.filter((key) => manifest[key] !== undefined && manifest[key] !== null);
  const rest = Object.keys(manifest).filter((key) => !MANIFEST_KEYS.includes(key));
  const ordered = Object.fromEntries([...known, ...rest].map((key) => [key, manifest[key]]));
  return new Document(ordered, FORM).toString(LINES);
}

/** Reads what is about to be written as a sync would, and refuses what a sync would refuse. */
export function checkedWrite(parse: ParseManifest, path: string, text: string, base: string | undefined): CheckedWrite {
  const bytes = Buffer.from(text);
  const parsed = parse({ path, sha: blobSha(bytes), bytes });
  if (parsed.outcome === 'skipped') throw new ReeveError('ASSET_INVALID', { problem: parsed.reason });
  if (parsed.outcome === 'bad') {
    const { code, message, line, column, hint } = parsed;
    throw new ReeveError('ASSET_INVALID', { problem: message, problem_code: code, line, column, hint });
  }
  return { asset: parsed.asset, write: { path, bytes, base } };
}

export interface CheckedWrite {
  readonly asset: Asset;
  readonly write: ManifestWrite;
}

const FORM = { version: '1.2', schema: 'core' } as const;

/** Text from `from` to `to` gives way to `put`. */
interface Splice {
  readonly from: number;
  readonly to: number;
  readonly put: string;
}

function spliceOf(document: Document.Parsed, text: string, key: string, value: unknown): Splice | undefined {
  const map = document.contents as YAMLMap<Scalar, Node | null>;
  const pair = map.items.find((one) => one.key.value === key);
  const isGone = value === null || value === undefined;
  if (!pair) return isGone ? undefined : appended(text, written(FORM, key, value));
  const node = pair.value;
  if (!isGone && JSON.stringify(node?.toJS(document)) === JSON.stringify(value)) return undefined;
  const from = pair.key.range![0];
  const to = lineEnd(text, node?.range?.[1] ?? pair.key.range![1]);
  if (isGone) return { from, to, put: '' };
  if (isScalar(node) && isInline(node) && isOneLine(value)) {
    return { from: node.range![0], to: node.range![1], put: inlineText(node, value) };
  }
  apply(document, [key], value);
  return { from, to, put: rendered(document, key) };
}

/** A block's text ends with its line; anything else may have a comment after it on the line. */
function lineEnd(text: string, offset: number): number {
  if (text[offset - 1] === '\n') return offset;
  const end = text.indexOf('\n', offset);
  return end < 0 ? text.length : end + 1;
}

const isOneLine = (value: unknown): boolean =>
  typeof value === 'string' ? !value.includes('\n') : typeof value === 'number' || typeof value === 'boolean';
const isInline = ({ type }: Scalar): boolean => type === 'PLAIN' || type === 'QUOTE_SINGLE' || type === 'QUOTE_DOUBLE';

const appended = (text: string, put: string): Splice => ({
  from: text.length,
  to: text.length,
  put: text === '' || text.endsWith('\n') ? put : `\n${put}`,
});

/** In the author's quotes, if it is still text; the writer takes others where these cannot hold it. */
function inlineText({ type, value: before }: Scalar, value: unknown): string {
  const scalar = new Scalar(value);
  if (type && typeof value === 'string' && typeof before === 'string') scalar.type = type;
  const document = new Document(undefined, FORM);
  document.contents = document.createNode({ k: scalar }) as never;
  return document.toString(LINES).slice('k: '.length).trimEnd();
}

/** One part with the comments in it, but without those above it: they stay where they are. */
function rendered(document: Document, key: string): string {
  const map = document.contents as YAMLMap<Scalar, Node | null>;
  const pair = map.items.find((one) => one.key.value === key)!;
  delete pair.key.commentBefore;
  delete pair.key.spaceBefore;
  const alone = new Document(undefined, FORM);
  const contents = new YAMLMap<Scalar, Node | null>();
  contents.items.push(pair);
  alone.contents = contents as never;
  return alone.toString(LINES);
}

const written = (form: typeof FORM, key: string, value: unknown): string =>
  new Document({ [key]: value }, form).toString(LINES);

/** Long texts stay in one line: how to break them is the author's business. */
const LINES = { lineWidth: 0, flowCollectionPadding: false } as const;

/** Goes down only where something differs, so that what stays the same keeps its comments and its form. */
function apply(document: Document, path: readonly (string | number)[], value: unknown): void {
  if (value === null || value === undefined) {
    document.deleteIn(path);
    return;
  }
  const node: unknown = document.getIn(path, true);
  const before: unknown = isCollection(node) || isScalar(node) ? node.toJS(document) : undefined;
  if (JSON.stringify(before) === JSON.stringify(value)) return;
  if (isMap(node) && isPlainObject(value)) {
    for (const key of Object.keys(before as object)) if (!(key in value)) document.deleteIn([...path, key]);
    for (const [key, child] of Object.entries(value)) apply(document, [...path, key], child);
    return;
  }
  const made = document.createNode(value);
  if (isCollection(made) && isCollection(node) && node.flow) made.flow = true;
  if (isScalar(made) && isScalar(node) && node.comment) made.comment = node.comment;
  document.setIn(path, made);
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
