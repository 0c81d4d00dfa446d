import { systemClock } from '../../clock.ts';
import { duration } from '../duration.ts';
import type { Output } from '../output.ts';
import { render } from '../render.ts';

interface Agents {
  readonly items: readonly {
    readonly agent_id: string;
    readonly tasks: readonly string[];
    readonly working_since?: string;
    readonly percent?: number;
    readonly last_seen?: string;
  }[];
}

const COLUMNS = ['agent_id', 'agent_type', 'status', 'takes_work', 'tasks', 'for', 'percent', 'note', 'last_seen'];
const LINE_COLUMNS = [
  'agent_id',
  'agent_type',
  'status',
  'takes_work',
  'tasks',
  'working_since',
  'percent',
  'note',
  'last_seen',
];

/** Who does what, since when. */
export function show(output: Output, { items }: Agents): void {
  const now = systemClock.now();
  const ago = (at?: string) => (at ? duration(Math.max(0, now - Date.parse(at)) / 1000) : undefined);
  const rows = items.map((item) => ({ ...item, tasks: item.tasks.join(', ') || undefined }));
  if (output.form === 'lines') {
    render(output, { items: rows }, LINE_COLUMNS);
    return;
  }
  const shown = rows.map((row) => ({
    ...row,
    for: ago(row.working_since),
    percent: row.percent === undefined ? undefined : `${row.percent} %`,
    last_seen: row.last_seen && `${ago(row.last_seen)} ago`,
  }));
  render(output, { items: shown }, COLUMNS);
}
