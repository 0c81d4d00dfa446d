import { duration } from './duration.ts';
import type { Output } from './output.ts';
import { line, pad, printable } from './render.ts';

export interface Board {
  readonly counts: Readonly<Record<'total' | 'pending' | 'in_progress' | 'completed' | 'failed' | 'blocked', number>>;
  readonly forecast?: { readonly rate_per_hour: number; readonly p50_seconds: number; readonly p85_seconds: number };
  readonly agents: readonly {
    readonly agent_id: string;
    readonly agent_type: string;
    readonly status: string;
    readonly tasks: readonly string[];
    readonly working_since?: string;
    readonly note?: string;
    readonly percent?: number;
  }[];
  readonly errors: readonly string[];
  readonly pauses: readonly { readonly what: string; readonly reason: string; readonly until?: string }[];
  readonly unserved: readonly { readonly task_id: string; readonly wants: string }[];
}

const BAR = 30;
const UNSERVED_SHOWN = 3;

/** How the work gets on, for people: a bar, the pace, who does what, and what needs them. */
export function showBoard(output: Output, board: Board, now: number): void {
  const { counts, agents, errors, pauses, unserved } = board;
  const { style } = output;
  const label = (word: string) => pad(word, 8);
  const rows = (word: string, lines: readonly string[]) => {
    for (const [at, text] of lines.entries()) output.print(`${label(at === 0 ? word : '')}${text}`);
  };
  output.print('');
  if (counts.total === 0) {
    rows('work', ['nothing to do yet: reeve task add, reeve task import, or a prd.db']);
  } else {
    rows('work', [`${bar(board)}  ${counts.completed} of ${counts.total} done`, style('dim', rest(counts))]);
    if (counts.completed + counts.failed < counts.total) rows('pace', [pace(board)]);
  }
  rows('agents', agentLines(board, now));
  rows(
    'paused',
    pauses.map(({ what, reason, until }) => `${what}: ${printable(reason)}${until ? ` (until ${until})` : ''}`),
  );
  rows(
    'errors',
    errors.map((text) => style('red', printable(text).slice(0, 200))),
  );
  if (unserved.length > 0 && agents.length > 0) {
    const more = unserved.length - UNSERVED_SHOWN;
    rows('alarm', [
      ...unserved
        .slice(0, UNSERVED_SHOWN)
        .map(({ task_id, wants }) =>
          style('yellow', `no live agent can take ${task_id}: it wants ${printable(wants)}`),
        ),
      ...(more > 0 ? [style('yellow', `and ${more} more`)] : []),
    ]);
  }
}

/** The same for pipes: one record a line, the first word says which. */
export function boardLines({ counts, forecast, agents, errors, pauses, unserved }: Board): string[] {
  return [
    `work ${line({ ...counts, ...forecast })}`,
    ...agents.map(({ agent_id, agent_type, status, tasks, working_since: since, percent, note }) => {
      const doing = tasks.length > 0 ? tasks.join(',') : undefined;
      return `agent ${line({ id: agent_id, type: agent_type, status, tasks: doing, since, percent, note })}`;
    }),
    ...pauses.map((pause) => `paused ${line(pause)}`),
    ...errors.map((text) => `error ${line({ text })}`),
    ...unserved.map(({ task_id, wants }) => `unserved ${line({ task: task_id, wants })}`),
  ];
}

function bar({ counts: { total, completed, failed, in_progress } }: Board): string {
  const share = (count: number) => Math.round((BAR * count) / total);
  const done = Math.min(BAR, share(completed));
  const working = Math.min(BAR - done, in_progress > 0 ? Math.max(1, share(in_progress)) : 0);
  const lost = Math.min(BAR - done - working, failed > 0 ? Math.max(1, share(failed)) : 0);
  return '█'.repeat(done) + '▒'.repeat(working) + '░'.repeat(BAR - done - working - lost) + '×'.repeat(lost);
}

function rest({ in_progress, pending, blocked, failed }: Board['counts']): string {
  const parts = [
    `${in_progress} working`,
    `${pending} ready`,
    `${blocked} waiting`,
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return parts.join(' · ');
}

function pace({ forecast }: Board): string {
  if (!forecast) return 'not enough history to say when it is done';
  const { rate_per_hour, p50_seconds, p85_seconds } = forecast;
  const [soon, safe] = [duration(p50_seconds), duration(p85_seconds)];
  const range = soon === safe ? `about ${soon}` : `${soon} to ${safe}`;
  return `${rate_per_hour >= 10 ? Math.round(rate_per_hour) : rate_per_hour} an hour, done in ${range} (p50 to p85)`;
}

function agentLines({ agents, counts }: Board, now: number): string[] {
  if (agents.length === 0) {
    return counts.pending > 0 ? ['none yet: reeve worker --agent ID --exec CMD, or reeve next --agent ID'] : [];
  }
  const busyFirst = [...agents].sort((a, b) => Number(b.tasks.length > 0) - Number(a.tasks.length > 0));
  const names = Math.max(...busyFirst.map(({ agent_id }) => agent_id.length));
  const types = Math.max(...busyFirst.map(({ agent_type }) => agent_type.length));
  return busyFirst.map(({ agent_id, agent_type, status, tasks, working_since, percent, note }) => {
    const since = working_since ? ` ${duration(Math.max(0, now - Date.parse(working_since)) / 1000)}` : '';
    const far = percent === undefined ? '' : ` ${percent} %`;
    const doing = tasks.length > 0 ? `${tasks.join(', ')}${since}${far}${note ? `  ${printable(note)}` : ''}` : status;
    return `${pad(agent_id, names)}  ${pad(agent_type, types)}  ${doing}`;
  });
}
