import type { z } from 'zod';
import type { Asset } from './asset.ts';
import { createSchemaCheck } from './json-schema.ts';
import { MANIFEST, MANIFEST_KEYS, type Manifest } from './manifest-schema.ts';
import { textOf } from './manifest-text.ts';
import type { Problem } from './path-record.ts';
import { type Careful, readCarefully } from './yaml-careful.ts';
import { createPlainReader } from './yaml-plain.ts';

export { MAX_MANIFEST_BYTES } from './manifest-text.ts';

/** A file that looks like a manifest by its path. `sha` is its git blob SHA, which the source has verified. */
export interface ManifestFile {
  readonly path: string;
  readonly sha: string;
  readonly bytes: Uint8Array;
}

export type Parsed =
  | { readonly outcome: 'ok'; readonly asset: Asset; readonly warnings: readonly Problem[] }
  | ({ readonly outcome: 'bad' } & Problem)
  | { readonly outcome: 'skipped'; readonly reason: string };

/** Part of the config fingerprint: raise it when the same bytes would be read differently, and everything is read again. */
export const PARSER_VERSION = 2;

export type ParseManifest = (file: ManifestFile) => Parsed;

/** Makes a parser. It holds compiled schemas, so make one and keep it. */
export function createManifestParser(): ParseManifest {
  const checkParameters = createSchemaCheck();
  const readPlain = createPlainReader();
  return (file) => {
    const text = textOf(file.bytes);
    if (typeof text !== 'string') return { outcome: 'bad', ...text };
    const plain = readPlain(text);
    if (plain !== undefined) {
      const quick = MANIFEST.safeParse(plain);
      const parameters = quick.data?.agent_specs?.parameters;
      if (quick.success && !(parameters && checkParameters(parameters))) return accept(file, quick.data, plain, text);
    }
    return carefully(file, text, checkParameters);
  };
}

function carefully(file: ManifestFile, text: string, checkParameters: ReturnType<typeof createSchemaCheck>): Parsed {
  const read = readCarefully(text);
  if ('code' in read) return { outcome: 'bad', ...read };
  const { value, place } = read;
  if (!isMapping(value)) {
    if (!isNamedManifest(file.path)) return { outcome: 'skipped', reason: 'it is not a mapping' };
    return {
      outcome: 'bad',
      code: 'NOT_A_MAPPING',
      message: 'the file is not a mapping of keys to values',
      ...place([]),
    };
  }
  if (value.id === undefined && !isNamedManifest(file.path)) return { outcome: 'skipped', reason: 'it has no id' };
  const parsed = MANIFEST.safeParse(value);
  if (!parsed.success) return { outcome: 'bad', ...explain(parsed.error, value, read) };
  const parameters = parsed.data.agent_specs?.parameters;
  const wrong = parameters && checkParameters(parameters);
  if (wrong) {
    const path = ['agent_specs', 'parameters', ...wrong.path];
    const message = `${path.join('.')}: ${wrong.message}`;
    return { outcome: 'bad', code: 'BAD_PARAMETERS', message, hint: 'It must be a JSON Schema.', ...place(path) };
  }
  return accept(file, parsed.data, value, text, place);
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Other YAML files may lie among the assets; one of this name means to be a manifest. */
const isNamedManifest = (path: string): boolean => /(?:^|\/)manifest\.ya?ml$/.test(path);

/** Characters that are there but not seen: bidirectional overrides, tag characters, zero-width ones. */
const HIDDEN = /[\u200B\u200E\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]|[\u{E0000}-\u{E007F}]/u;

function accept(file: ManifestFile, manifest: Manifest, raw: unknown, text: string, place?: Careful['place']): Parsed {
  const warnings: Problem[] = [];
  const at = (path: readonly PropertyKey[]) => (place ?? placeLater(text))(path);
  for (const key of Object.keys(raw as object)) {
    if (MANIFEST_KEYS.includes(key)) continue;
    warnings.push({ code: 'UNKNOWN_KEY', message: `the key ${JSON.stringify(key)} is not used`, ...at([key]) });
  }
  if (HIDDEN.test(text)) {
    const message = 'the file holds invisible characters, which a model reads and people do not see';
    warnings.push({ code: 'HIDDEN_TEXT', message, line: text.slice(0, text.search(HIDDEN)).split('\n').length });
  }
  if (manifest.category === 'tool' && !manifest.agent_specs) {
    warnings.push({ code: 'NO_SPECS', message: 'a tool without agent_specs cannot be offered to a model', ...at([]) });
  }
  return {
    outcome: 'ok',
    asset: { ...manifest, github_path: file.path, github_sha: file.sha },
    warnings,
  };
}

const placeLater = (text: string) => (path: readonly PropertyKey[]) => {
  const read = readCarefully(text);
  return 'code' in read ? { line: 1, column: 1 } : read.place(path);
};

/** The first thing that is wrong, in the author's words. */
function explain(error: z.ZodError, value: unknown, { place }: Careful): Problem {
  const issue = error.issues[0]!;
  const path = issue.path;
  const found = path.reduce<unknown>((node, key) => (node as Record<PropertyKey, unknown> | undefined)?.[key], value);
  const name = path.join('.');
  if (found === undefined) {
    const parent = path.slice(0, -1);
    const hint = name === 'id' ? 'Add a line such as: id: my_tool' : undefined;
    const message = issue.code === 'invalid_type' || issue.code === 'invalid_value' ? 'is missing' : issue.message;
    return { code: 'MISSING_FIELD', message: `${name} ${message}`, ...(hint && { hint }), ...place(parent) };
  }
  if (typeof found === 'number' && issue.code === 'invalid_type' && issue.expected === 'string') {
    const message = `${name} must be text, and was read as the number ${found}`;
    return { code: 'NOT_TEXT', message, hint: `Quote it: ${String(path.at(-1))}: "…"`, ...place(path) };
  }
  const code = name === 'id' ? 'BAD_ID' : name === 'version' ? 'BAD_VERSION' : 'BAD_FIELD';
  const others = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  return { code, message: `${name}: ${issue.message}${others}`, ...place(path) };
}
