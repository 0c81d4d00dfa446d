import type { Output } from '../output.ts';
import { line, printable } from '../render.ts';

interface Problem {
  readonly code: string;
  readonly message: string;
  readonly line?: number;
  readonly column?: number;
  readonly hint?: string;
}
interface Report {
  readonly path: string;
  readonly status: string;
  readonly id?: string;
  readonly since?: string;
  readonly problem?: Problem;
  readonly warnings?: readonly Problem[];
}

/** In the form editors and terminals make links of: path:line:column. */
export function show(output: Output, { items }: { readonly items: readonly Report[] }): void {
  for (const { path, status, id, since, problem, warnings = [] } of items) {
    if (output.form === 'lines') {
      const codes = warnings.map(({ code }) => code).join(',') || undefined;
      output.print(`${status} ${line({ path, id, since, ...problem, warnings: codes })}`);
      continue;
    }
    if (problem) {
      output.print(`${place(path, problem)}: ${output.style('red', status)}: ${printable(problem.message)}`);
      if (problem.hint) output.print(`  ${output.style('dim', 'fix')} ${printable(problem.hint)}`);
      if (id) output.print(`  ${output.style('dim', `the last good version of ${printable(id)} stays in use`)}`);
    }
    for (const warning of warnings) {
      output.print(`${place(path, warning)}: ${output.style('yellow', 'warning')}: ${printable(warning.message)}`);
    }
  }
  if (items.length === 0) output.hint('every file is good');
}

export const place = (path: string, { line: at, column }: Pick<Problem, 'line' | 'column'>): string =>
  printable([path, at, at === undefined ? undefined : column].filter((part) => part !== undefined).join(':'));
