import { glob, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { ReeveError, reason } from '../errors.ts';
import { MANIFESTS } from '../manifest-globs.ts';
import { blobSha } from './asset.ts';
import { createManifestParser, type Parsed } from './manifest.ts';
import type { Problem } from './path-record.ts';

export interface FileFinding extends Problem {
  readonly path: string;
  readonly severity: 'error' | 'warning';
}

export interface Validation {
  readonly files: number;
  readonly assets: number;
  readonly findings: readonly FileFinding[];
}

/** As a sync looks for them, and also where the folder holds the library one level down. */
const CANDIDATES = [...MANIFESTS, '**/{tools,prompts,skills}/**/*.{yaml,yml}'];

/** Reads files and folders as a sync would, without Redis: every error and warning, with its place. */
export async function validateFiles(paths: readonly string[], cwd: string): Promise<Validation> {
  const parse = createManifestParser();
  const owners = new Map<string, string>();
  const findings: FileFinding[] = [];
  const named = new Set(paths.map((path) => resolve(cwd, path)));
  const files = new Set((await Promise.all(paths.map((path) => expand(resolve(cwd, path), path)))).flat().sort());
  for (const file of files) {
    const bytes = await readFile(file);
    const shown = relative(cwd, file) || file;
    // Among others a YAML file may be something else; one that was named is meant to be a manifest.
    const path = named.has(file) ? 'manifest.yaml' : file.split(sep).join('/');
    const parsed = parse({ path, sha: blobSha(bytes), bytes });
    findings.push(...findingsOf(shown, parsed));
    if (parsed.outcome !== 'ok') continue;
    const { id, runtime } = parsed.asset;
    const owner = owners.get(id.toLowerCase());
    if (owner)
      findings.push(
        error(shown, 'DUPLICATE_ID', `the id ${id} is taken by ${owner}`, 'Give one of the two another id.'),
      );
    else owners.set(id.toLowerCase(), shown);
    const isRun = runtime?.entry && runtime.language !== 'none' && runtime.language !== 'docker';
    if (isRun && !(await isFile(join(dirname(file), runtime.entry!)))) {
      const message = `runtime.entry: there is no file ${runtime.entry}`;
      findings.push({ ...error(shown, 'ENTRY_MISSING', message), severity: 'warning' });
    }
  }
  return { files: files.size, assets: owners.size, findings };
}

const error = (path: string, code: string, message: string, hint?: string): FileFinding => ({
  path,
  severity: 'error',
  code,
  message,
  ...(hint && { hint }),
});

function findingsOf(path: string, parsed: Parsed): FileFinding[] {
  if (parsed.outcome === 'ok') return parsed.warnings.map((warning) => ({ path, severity: 'warning', ...warning }));
  if (parsed.outcome === 'skipped') return [];
  const { outcome: _outcome, ...problem } = parsed;
  return [{ path, severity: 'error', ...problem }];
}

/** A folder stands for the manifests in it; a file is taken at its word. */
async function expand(path: string, asked: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
  } catch (cause) {
    throw new ReeveError(
      'USAGE',
      { problem: `${asked} cannot be read: ${reason(cause)}`, hint: 'Name a manifest or a folder.' },
      { cause },
    );
  }
  const found: string[] = [];
  for await (const file of glob(CANDIDATES, {
    cwd: path,
    exclude: (name) => name === 'node_modules' || name === '.git',
  })) {
    found.push(join(path, file));
  }
  return found;
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
