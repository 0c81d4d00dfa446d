import { createRequire } from 'node:module';
import type { Output } from './output.ts';

type Row = Readonly<Record<string, unknown>>;

/** The general form of an answer: a list becomes a table or lines, anything else a list of facts. JSON is printed by whoever asked. */
export function render(output: Output, answer: unknown, columns?: readonly string[]): void {
  const row = answer as Row;
  if (Array.isArray(row.items)) renderList(output, row.items as Row[], columns, row.next_cursor);
  else for (const text of output.form === 'lines' ? [line(row)] : facts(row)) output.print(text);
}

function renderList(
  output: Output,
  items: readonly Row[],
  columns: readonly string[] | undefined,
  next: unknown,
): void {
  const names = columns ?? Object.keys(items[0] ?? {});
  if (output.form === 'lines') for (const item of items) output.print(line(item, names));
  else if (items.length === 0) output.hint('nothing there');
  else for (const text of table(items, names, output.columns)) output.print(text);
  if (typeof next === 'string' && next !== '' && items.length > 0) output.hint(`more: --cursor ${next}`);
}

/** Aligned by what a terminal shows, not by code units: CJK takes two columns. */
export function table(items: readonly Row[], names: readonly string[], width: number): string[] {
  const cells = [
    names.map((name) => name.replaceAll('_', ' ').toUpperCase()),
    ...items.map((item) => names.map((name) => plain(item[name]))),
  ];
  const widths = names.map((_, column) => Math.max(...cells.map((row) => widthOf(row[column] ?? ''))));
  return cells.map((row) =>
    cut(
      row.map((cell, column) => (column === names.length - 1 ? cell : pad(cell, widths[column] ?? 0))).join('  '),
      width,
    ),
  );
}

/** logfmt: one record, one line. */
export const line = (row: Row, names: readonly string[] = Object.keys(row)): string =>
  names
    .filter((name) => row[name] !== undefined)
    .map((name) => `${name}=${quoted(plain(row[name]))}`)
    .join(' ');

export function facts(row: Row): string[] {
  const names = Object.keys(row).filter((name) => row[name] !== undefined);
  const width = Math.max(0, ...names.map((name) => name.length));
  return names.map((name) => `${pad(name.replaceAll('_', ' '), width)}  ${plain(row[name])}`);
}

/** How many columns a text takes. What knows about emoji takes longer to load than most commands to run. */
const widthOf = (text: string): number => (/^[ -~]*$/.test(text) ? text.length : stringWidth(text));
const stringWidth = (text: string): number =>
  (createRequire(import.meta.url)('string-width') as typeof import('string-width')).default(text);

export const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));

/** Control characters from foreign text must not reach the terminal. */
const plain = (value: unknown): string =>
  printable(typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value));
export const printable = (text: string): string => text.replace(/\p{Cc}/gu, ' ');
const quoted = (text: string): string => (/[\s"=]/.test(text) || text === '' ? JSON.stringify(text) : text);

function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text.trimEnd();
  let kept = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (widthOf(kept + segment) > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}
