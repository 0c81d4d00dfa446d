import { styleText } from 'node:util';
import { asReeveError, type Problem, toProblem } from '../errors.ts';
import { openScreen, type Screen } from './screen.ts';

/** How a command speaks: data on standard output, everything else on standard error. */
export interface Output {
  /** table for people, lines (word key=value) for pipes, json on request. */
  readonly form: 'table' | 'lines' | 'json';
  /** With `--json id,title`: only these fields. */
  readonly fields?: readonly string[] | undefined;
  /** As they are now: a window may change its size. */
  readonly columns: number;
  /** It is shown again and again, and only what is different is printed. */
  readonly repeats?: boolean;
  /** The whole terminal, where there is one that can be drawn on. */
  readonly screen?: (() => Screen) | undefined;
  readonly style: Style;
  readonly print: (text: string) => void;
  readonly hint: (text: string) => void;
  /** A line on a terminal's standard error that the next one replaces; nothing takes it away. Elsewhere it is not shown. */
  readonly status: (text?: string) => void;
  /** The whole answer as one JSON object. */
  readonly json: (value: unknown) => void;
}

export type Style = (format: 'bold' | 'dim' | 'green' | 'yellow' | 'red', text: string) => string;

export interface OutputOptions {
  /** What --json was given: true, or a list of fields. */
  readonly json?: boolean | string | undefined;
  readonly color?: boolean | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

export function createOutput({ json, color = true, env, stdout, stderr }: OutputOptions): Output {
  const isJson = json !== undefined ? json !== false : env.REEVE_OUTPUT === 'json';
  const hasColor = color && !env.NO_COLOR && env.TERM !== 'dumb' && (Boolean(env.FORCE_COLOR) || stdout.isTTY);
  const fields = typeof json === 'string' ? json.split(',').map((name) => name.trim()) : undefined;
  return {
    form: isJson ? 'json' : stdout.isTTY ? 'table' : 'lines',
    fields,
    get columns() {
      return stdout.columns ?? 120;
    },
    screen: stdout.isTTY && env.TERM !== 'dumb' ? () => openScreen(stdout) : undefined,
    style: (format, text) => (hasColor ? styleText(format, text, { validateStream: false }) : text),
    print: (text) => void stdout.write(`${text}\n`),
    hint: (text) => void stderr.write(`${text}\n`),
    status: (text = '') => void (stderr.isTTY && stderr.write(`\r\u001b[2K${text}`)),
    json: (value) => void stdout.write(`${JSON.stringify(project(value, fields))}\n`),
  };
}

/** Says what went wrong: on standard error for people, and with --json as an object on standard output too. */
export function reportFailure(output: Output, thrown: unknown, next?: string): number {
  const error = asReeveError(thrown);
  const problem: Problem = { ...toProblem(error), ...(next && { next }) };
  if (output.form === 'json') output.json({ error: problem });
  output.hint(`${output.style('red', 'error')} ${problem.detail}`);
  if (error.code === 'INTERNAL' && error.cause instanceof Error) output.hint(error.cause.stack ?? error.cause.message);
  output.hint(`  ${output.style('dim', 'next')}  ${problem.next}`);
  return error.row.exit;
}

/** Keeps the named fields: of each item of a list, else of the answer itself. */
function project(value: unknown, fields: readonly string[] | undefined): unknown {
  if (!fields || typeof value !== 'object' || value === null || 'error' in value) return value;
  if ('items' in value && Array.isArray(value.items)) {
    return { ...value, items: value.items.map((item) => pick(item as object, fields)) };
  }
  return pick(value, fields);
}

const pick = (value: object, fields: readonly string[]) =>
  Object.fromEntries(fields.map((name) => [name, (value as Record<string, unknown>)[name]]));
