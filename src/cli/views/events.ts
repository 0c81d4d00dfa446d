import type { Output } from '../output.ts';
import { line, printable } from '../render.ts';

interface Events {
  readonly items: readonly {
    readonly at: string;
    readonly event: string;
    readonly source: string;
    readonly payload: Readonly<Record<string, unknown>>;
  }[];
  readonly next_cursor?: string;
  readonly gaps?: readonly string[];
}

export function show(output: Output, { items, next_cursor, gaps = [] }: Events): void {
  if (gaps.length > 0) output.hint(`some events of ${gaps.join(', ')} are gone: the streams keep only the newest`);
  for (const { at, event, source, payload } of items) {
    if (output.form === 'lines') output.print(`${event} ${line({ at, source, ...payload })}`);
    else
      output.print(
        `${output.style('dim', at.slice(0, 23).replace('T', ' '))}  ${output.style('bold', printable(event))}  ${line({ ...payload, source })}`,
      );
  }
  if (next_cursor === undefined) return;
  if (items.length === 0) output.hint('nothing happened yet');
  else output.hint(`what comes after: reeve events --since ${next_cursor}`);
}
