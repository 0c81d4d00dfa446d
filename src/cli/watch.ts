import { systemClock } from '../clock.ts';
import { EXIT } from '../error-catalogue.ts';
import { ReeveError } from '../errors.ts';
import type { Output } from './output.ts';

export interface Watched {
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  readonly show: (output: Output, answer: unknown) => void;
  readonly signal: AbortSignal;
}

const WATCH_MS = 2_000;

/**
 * Shows an answer again and again until Ctrl-C: on a terminal as a screen that is drawn over, in a pipe as the lines that
 * became different, with --jsonl as one object a line. A daemon that goes away is waited for; only the first question may fail.
 */
export async function watch(output: Output, { ask, show, signal }: Watched): Promise<number> {
  const display =
    output.form === 'json' ? plainly(output, show) : output.screen ? onScreen(output, show) : asLines(output, show);
  let isFirst = true;
  try {
    while (!signal.aborted) {
      try {
        display.show(await ask(signal));
        isFirst = false;
      } catch (error) {
        if (isFirst || signal.aborted || !isAway(error)) throw error;
        display.wait('the daemon is gone; waiting for it');
      }
      await systemClock.sleep(WATCH_MS, signal);
    }
  } finally {
    display.close();
  }
  return EXIT.interrupted;
}

const isAway = (error: unknown): boolean => !(error instanceof ReeveError) || error.row.exit === EXIT.unavailable;

interface Display {
  show(answer: unknown): void;
  wait(why: string): void;
  close(): void;
}

const plainly = (output: Output, show: Watched['show']): Display => ({
  show: (answer) => show(output, answer),
  wait: output.hint,
  close: () => {},
});

function onScreen(output: Output, show: Watched['show']): Display {
  const screen = output.screen!();
  let last: unknown;
  let foot = '';
  const frame = (): string[] => {
    const lines: string[] = [];
    if (last !== undefined) show({ ...output, print: (text) => void lines.push(...text.split('\n')) }, last);
    return lines;
  };
  const draw = () => screen.draw([...frame(), '', output.style('dim', foot)]);
  screen.resized(draw);
  return {
    show(answer) {
      last = answer;
      foot = `${new Date(systemClock.now()).toTimeString().slice(0, 8)}, every ${WATCH_MS / 1000} s; Ctrl-C ends`;
      draw();
    },
    wait(why) {
      foot = why;
      draw();
    },
    // What was seen last stays to be read and copied.
    close() {
      screen.close();
      for (const line of frame()) output.print(line);
    },
  };
}

function asLines(output: Output, show: Watched['show']): Display {
  let before = new Set<string>();
  return {
    show(answer) {
      const lines: string[] = [];
      show({ ...output, repeats: true, print: (text) => void lines.push(...text.split('\n')) }, answer);
      for (const line of lines) if (!before.has(line)) output.print(line);
      before = new Set(lines);
    },
    wait: output.hint,
    close: () => {},
  };
}
