import type { Output } from '../output.ts';
import { line, table } from '../render.ts';

interface Entry {
  readonly at: string;
  readonly op: string;
  readonly version?: string;
  readonly commit: string;
  readonly sha?: string;
  readonly path: string;
  readonly same_version_other_bytes: boolean;
}

export function show(output: Output, { items }: { readonly items: readonly Entry[] }): void {
  if (output.form === 'lines') {
    for (const { op, ...rest } of items) output.print(`${op} ${line({ ...rest })}`);
    return;
  }
  const rows = items.map(({ at, op, version = '', commit, sha = '', path, same_version_other_bytes: isOther }) => ({
    at: at.slice(0, 19).replace('T', ' '),
    what: op,
    version: isOther ? `${version} (other bytes)` : version,
    commit: commit.slice(0, 10),
    blob: sha.slice(0, 10),
    path,
  }));
  for (const text of table(rows, ['at', 'what', 'version', 'commit', 'blob', 'path'], output.columns))
    output.print(text);
  if (items.some(({ same_version_other_bytes: isOther }) => isOther)) {
    output.hint('a version was released with other bytes before: raise the version with each change');
  }
}
