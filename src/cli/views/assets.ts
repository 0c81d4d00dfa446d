import type { Output } from '../output.ts';
import { line, table } from '../render.ts';

interface Assets {
  readonly items: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor?: string;
  readonly total: number;
  readonly is_cut?: boolean;
}

const COLUMNS = ['id', 'category', 'version', 'name', 'description'];

/** How many there are stands on standard error: the list itself is for pipes. */
export function show(output: Output, { items, next_cursor, total, is_cut }: Assets): void {
  const sources = new Set(items.map(({ source }) => source));
  const names = sources.size > 1 ? ['source', ...COLUMNS] : COLUMNS;
  if (output.form === 'lines') for (const item of items) output.print(`asset ${line(item, names)}`);
  else if (items.length > 0) for (const text of table(items, names, output.columns)) output.print(text);
  if (items.length === 0) output.hint('no such assets; files that could not be read: reeve asset invalid');
  else if (next_cursor)
    output.hint(`${items.length} of ${is_cut ? 'more than ' : ''}${total} shown. More: --cursor ${next_cursor}`);
}
