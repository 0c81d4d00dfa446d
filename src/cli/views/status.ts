import { systemClock } from '../../clock.ts';
import type { DependencyState } from '../../system/readiness.ts';
import { type Board, boardLines, showBoard } from '../board.ts';
import { duration } from '../duration.ts';
import type { Output } from '../output.ts';
import { line, pad } from '../render.ts';

interface Status {
  readonly state?: string;
  readonly ready?: boolean;
  readonly version?: string;
  readonly address?: string;
  readonly project?: string;
  readonly uptime_seconds?: number;
  readonly identity?: 'local' | 'tokens' | 'unknown';
  readonly dependencies: readonly DependencyState[];
  readonly work?: Board;
}

/** One line for the whole, one for each dependency; what is broken says why and what to do. Then the work. */
export function show(output: Output, status: Status): void {
  const state = status.state ?? (status.ready ? 'ready' : 'not ready');
  const { version, address, project, uptime_seconds: up, identity } = status;
  if (output.form === 'lines') {
    // Where only what changed is printed, what always changes is left out.
    const uptime = output.repeats ? undefined : up;
    const facts = { version, address, project, uptime_seconds: uptime, identity };
    output.print(`${state.replace(' ', '-')} ${line(facts)}`.trimEnd());
    for (const { name, ok, embedded, address: at, latency_ms, facts, problem } of status.dependencies) {
      const latency = output.repeats ? undefined : latency_ms;
      output.print(
        `${ok ? 'up' : 'down'} ${line({ name, embedded, address: at, latency_ms: latency, ...facts, problem })}`,
      );
    }
    for (const text of status.work ? boardLines(status.work) : []) output.print(text);
    return;
  }
  const colour = state === 'ready' ? 'green' : state === 'degraded' ? 'yellow' : 'red';
  const where = version ? ` reeve ${version} at ${address}, project ${project}, up ${duration(up ?? 0)}` : '';
  output.print(`${output.style(colour, state)}${where}`);
  const width = Math.max(...status.dependencies.map(({ name }) => name.length));
  for (const { name, ok, required, embedded, address: at, facts, problem, next } of status.dependencies) {
    const mark = ok ? output.style('green', '✓') : output.style(required ? 'red' : 'yellow', '✗');
    const told = Object.entries(facts).map(([fact, value]) => `${fact} ${value}`);
    output.print(
      `  ${mark} ${pad(name, width)}  ${[embedded ? 'embedded' : '', at, ...told].filter(Boolean).join(', ')}`,
    );
    if (problem) output.print(`    ${problem}\n    ${output.style('dim', 'next')}  ${next}`);
  }
  if (identity === 'local') {
    output.print('  no token exists: callers on this machine act as the admin "local" (reeve token create ends that)');
  }
  if (status.work) showBoard(output, status.work, systemClock.now());
}
