import type { Output } from '../output.ts';
import { line, printable } from '../render.ts';

interface Ruling {
  readonly task_id: string;
  readonly state: string;
  readonly because: string;
  readonly risk: {
    readonly score: number;
    readonly level: string;
    readonly factors: readonly {
      readonly name: string;
      readonly value: number;
      readonly weight: number;
      readonly points: number;
      readonly because: string;
    }[];
  };
  readonly requests: readonly { readonly approval_id?: string; readonly reviewer: string }[];
  readonly preview: { readonly warnings: readonly string[]; readonly errors: readonly string[] };
}

/** Where the task stands since, why, what its risk is made of, and who was asked. */
export function show(output: Output, { task_id, state, because, risk, requests, preview }: Ruling): void {
  if (output.form === 'lines') {
    output.print(`ok ${line({ task: task_id, state, risk: risk.score, level: risk.level, because })}`);
    for (const request of requests) output.print(`asked ${line({ ...request })}`);
    return;
  }
  output.print(`${output.style('bold', printable(task_id))} is ${state}: ${printable(because)}.`);
  output.print(`  risk ${risk.score} ${risk.level}`);
  for (const { name, value, weight, points, because: why } of risk.factors) {
    const sum = `${value} × ${weight} = ${points.toFixed(1)}`;
    output.print(
      `    ${name.replaceAll('_', ' ').padEnd(24)} ${sum.padEnd(18)} ${output.style('dim', printable(why))}`,
    );
  }
  for (const text of [...preview.errors, ...preview.warnings]) output.print(`  ! ${printable(text)}`);
  for (const { approval_id, reviewer } of requests)
    output.print(`  asked  ${reviewer}${approval_id ? `   ${approval_id}` : ''}`);
}
