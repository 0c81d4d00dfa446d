import type { DependencyState } from '../../system/readiness.ts';
import type { Output } from '../output.ts';
import { line, pad } from '../render.ts';

interface Status {
  readonly state?: string;
  readonly ready?: boolean;
  readonly version?: string;
  readonly address?: string;
  readonly project?: string;
  readonly uptime_seconds?: number;
  readonly dependencies: readonly DependencyState[];
}

/** One line for the whole, one for each dependency; what is broken says why and what to do. */
export function show(output: Output, status: Status): void {
  const state = status.state ?? (status.ready ? 'ready' : 'not ready');
  const { version, address, project, uptime_seconds: up } = status;
  if (output.form === 'lines') {
    output.print(`${state.replace(' ', '-')} ${line({ version, address, project, uptime_seconds: up })}`.trimEnd());
    for (const { name, ok, embedded, address: at, latency_ms, facts, problem } of status.dependencies) {
      output.print(`${ok ? 'up' : 'down'} ${line({ name, embedded, address: at, latency_ms, ...facts, problem })}`);
    }
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
}

/** 3h02m, 14m, 8s: the two largest units. */
export function duration(seconds: number): string {
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days}d${hours}h`;
  if (hours > 0) return `${hours}h${String(minutes).padStart(2, '0')}m`;
  return minutes > 0 ? `${minutes}m` : `${Math.floor(seconds)}s`;
}
