import type { Output } from '../output.ts';
import { line } from '../render.ts';

interface Graph {
  readonly edges: readonly { from: string; to: string; lock: string; mode: string; kind: string }[];
  readonly deadlocks: readonly {
    victim: string;
    lock: string;
    cycle: readonly { agent: string; waits_for: string; behind: string; by: string }[];
  }[];
}

export function show(output: Output, { edges, deadlocks }: Graph): void {
  if (output.form === 'lines') {
    for (const edge of edges) output.print(`waits ${line(edge)}`);
    for (const { victim, lock, cycle } of deadlocks) {
      output.print(`deadlock ${line({ victim, lock, cycle: cycle.map(({ agent }) => agent).join('>') })}`);
    }
    return;
  }
  for (const { from, to, lock, kind } of edges) {
    const how = kind === 'hard' ? 'which it holds' : 'where it stands before it in line';
    output.print(`${from} waits for ${to}: ${lock}, ${how}`);
  }
  for (const { victim, lock, cycle } of deadlocks) {
    const circle = [...cycle.map(({ agent }) => agent), cycle[0]?.agent].join(' → ');
    output.print(`${output.style('red', 'deadlock')} ${circle}; ${victim} gives way and stops waiting for ${lock}`);
  }
  if (edges.length === 0) output.hint('nobody waits');
  else if (deadlocks.length === 0) output.hint('no deadlock');
}
