import { Document, isCollection, isMap, isScalar, parseDocument, Scalar } from 'yaml';
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

/** Changes values of a manifest and leaves the rest as its author wrote it: comments, order of keys, quotes, blank lines. */
export function editManifest(text: string, changes: ManifestChanges): string {
  const document = parseDocument(text, { version: '1.2', schema: 'core', keepSourceTokens: true });
  if (!isMap(document.contents)) throw new ReeveError('ASSET_INVALID', { problem: 'the manifest is not a mapping' });
  for (const [key, value] of Object.entries(changes)) apply(document as Document, [key], value);
  const written = document.toString({ lineWidth: 0, flowCollectionPadding: isPadded(text) });
  return text.includes('\r\n') ? written.replace(/\r?\n/g, '\r\n') : written;
}

/** A new manifest, keys in the order of the schema. */
export function newManifest(manifest: Readonly<Record<string, unknown>>): string {
  const known = MANIFEST_KEYS.filter((key) => manifest[key] !== undefined && manifest[key] !== null);
  const rest = Object.keys(manifest).filter((key) => !MANIFEST_KEYS.includes(key));
  const document = new Document(Object.fromEntries([...known, ...rest].map((key) => [key, manifest[key]])), {
    version: '1.2',
    schema: 'core',
  });
  return document.toString({ lineWidth: 0 });
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

/** Goes down only where something differs, so that what stays the same keeps its form. */
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
  if (isScalar(node) && !isCollection(node) && typeof value !== 'object') {
    const wasText = typeof node.value === 'string';
    node.value = value;
    // The author's quotes stay, unless the value is no text any more or needs more than one line.
    if (wasText !== (typeof value === 'string') || (typeof value === 'string' && value.includes('\n'))) {
      delete node.type;
    }
    delete node.source;
    return;
  }
  const made = document.createNode(value);
  if (isCollection(made) && isCollection(node) && node.flow) made.flow = true;
  if (isScalar(made) && node instanceof Scalar && node.comment) made.comment = node.comment;
  document.setIn(path, made);
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `{ a: 1 }` or `{a: 1}`: as the author has it. */
const isPadded = (text: string): boolean => !/[[{][^\s\]}#]/.test(text) || /[[{] \S/.test(text);
