import type { Output } from '../output.ts';
import { facts, line, printable } from '../render.ts';

interface Approval {
  readonly requests: readonly Readonly<Record<string, unknown>>[];
  readonly comments: readonly { readonly by: string; readonly at: string; readonly text: string }[];
  readonly assessment?: { readonly factors: readonly Readonly<Record<string, unknown>>[] };
  readonly tally: { readonly because: string; readonly approved_count: number; readonly required_count: number };
  readonly [more: string]: unknown;
}

/** The question, what its risk is made of, how the vote stands, what people said. */
export function show(output: Output, { requests, comments, assessment, tally, ...own }: Approval): void {
  const standing = { approvals: `${tally.approved_count} of ${tally.required_count}`, because: tally.because };
  if (output.form === 'lines') {
    output.print(line({ ...own, ...standing }));
    for (const request of requests) output.print(`asked ${line(request)}`);
    for (const comment of comments) output.print(`comment ${line({ ...comment })}`);
    return;
  }
  for (const text of facts({ ...own, ...standing })) output.print(text);
  for (const factor of assessment?.factors ?? []) output.print(`  risk   ${line(factor)}`);
  for (const request of requests) output.print(`  asked  ${line(request)}`);
  for (const { by, at, text } of comments) output.print(`  ${printable(by)}, ${at}: ${printable(text)}`);
}
