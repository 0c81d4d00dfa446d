import type { Running } from '../sync/source-runner.ts';
import type { Output } from './output.ts';
import { line, pad } from './render.ts';

const CELLS = 24;
/** Without a terminal a line is written for a new phase and for each further tenth, not for each file. */
const TENTH = 10;

/** Shows how far syncs are: on a terminal a bar that moves, else lines; nothing where the answer is JSON. */
export function syncProgress(output: Output): (source: string, running: Running) => void {
  const last = new Map<string, { phase: string; tenth: number }>();
  return (source, { phase, done, total }) => {
    if (output.form === 'json') return;
    const before = last.get(source);
    const tenth = total === 0 ? TENTH : Math.floor((done / total) * TENTH);
    if (output.form === 'table') {
      if (before && before.phase !== phase) finishPhase(output, source, before.phase);
      output.status(
        `${output.style('bold', '▸')} ${pad(phase, 8)} ${bar(done, total)} ${done}/${total}  ${output.style('dim', source)}`,
      );
    } else if (before?.phase !== phase || before.tenth !== tenth) {
      output.hint(`sync ${line({ source, phase, done, total })}`);
    }
    last.set(source, { phase, tenth });
  };
}

function finishPhase(output: Output, source: string, phase: string): void {
  output.status();
  output.hint(`${output.style('green', '✓')} ${pad(phase, 8)} ${output.style('dim', source)}`);
}

function bar(done: number, total: number): string {
  const full = total === 0 ? CELLS : Math.round((done / total) * CELLS);
  return '█'.repeat(full) + '░'.repeat(CELLS - full);
}
