import type { Hold } from '../../hold.ts';
import type { Output } from '../output.ts';
import { line, printable } from '../render.ts';

interface Why {
  readonly subject: string;
  readonly state: string;
  readonly says: string;
  readonly holds: readonly Hold[];
  readonly chain: readonly { readonly subject: string; readonly says: string }[];
  readonly next: string;
}

/** One sentence for the thing, one for each that stands behind it, and the first thing to do. */
export function show(output: Output, { subject, state, says, holds, chain, next }: Why): void {
  if (output.form === 'lines') {
    const { holder, since, clears_at } = holds[0] ?? {};
    output.print(
      `${state} ${line({ subject, by: holder, since, until: clears_at ?? undefined, because: says, fix: next })}`,
    );
    for (const step of chain) output.print(`behind ${line({ ...step })}`);
    return;
  }
  output.print(`${output.style('bold', printable(subject))} is ${state}.`);
  output.print(`  because  ${printable(says)}`);
  for (const step of chain) output.print(`  because  ${printable(step.says)}`);
  for (const { label, command, allowed, why_not } of holds.flatMap(({ actions }) => actions)) {
    output.print(
      `  ${output.style('dim', label.padEnd(12))}  ${command}${allowed ? '' : `   (not for you: ${why_not})`}`,
    );
  }
  output.print(`${output.style('dim', 'next')}   ${next}`);
}
