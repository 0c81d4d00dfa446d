import { stringify } from 'yaml';
import type { Output } from '../output.ts';
import { line, printable } from '../render.ts';

interface Stale {
  readonly status: string;
  readonly problem?: { readonly message: string; readonly line?: number; readonly hint?: string };
}

/** The manifest as its author would write it, and where it came from. */
export function show(output: Output, answer: Readonly<Record<string, unknown>> & { readonly stale?: Stale }): void {
  if (output.form === 'lines') {
    output.print(`asset ${line(answer)}`);
    return;
  }
  const { github_path, github_sha, created_at, updated_at, source, uri, stale, ...manifest } = answer;
  for (const text of stringify(manifest, { lineWidth: 0 }).trimEnd().split('\n')) output.print(printable(text));
  const day = (seconds: unknown) => new Date(Number(seconds) * 1000).toISOString().slice(0, 16).replace('T', ' ');
  output.print('');
  output.print(output.style('dim', printable(`${String(source)}: ${String(github_path)} at ${String(github_sha)}`)));
  output.print(
    output.style('dim', `created ${day(created_at)}, updated ${day(updated_at)}, ${printable(String(uri))}`),
  );
  if (!stale) return;
  output.print(output.style('yellow', printable(`its file is ${stale.status}: ${stale.problem?.message ?? ''}`)));
  if (stale.problem?.hint) output.print(`${output.style('dim', 'next')}  ${printable(stale.problem.hint)}`);
}
