import { createTask, validate } from 'node-cron';
import { jittered } from './clock.ts';

/** '30s', '5m' or '2h'; a cron expression; or 'off'. */
export type Schedule =
  | { readonly kind: 'off' }
  | { readonly kind: 'every'; readonly ms: number }
  | { readonly kind: 'cron'; readonly expression: string };

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** Undefined if the text is none of these. */
export function parseSchedule(text: string): Schedule | undefined {
  if (text === 'off') return { kind: 'off' };
  const interval = /^(\d+)(ms|s|m|h)$/.exec(text);
  if (interval) {
    const ms = Number(interval[1]) * UNITS[interval[2] as keyof typeof UNITS];
    return ms >= 1_000 ? { kind: 'every', ms } : undefined;
  }
  return validate(text) ? { kind: 'cron', expression: text } : undefined;
}

/** Intervals are spread so that daemons do not ask in step; a cron expression means what it says, but for some seconds. */
const CRON_SPREAD_MS = 5_000;

/** How long until the next turn. */
export function untilNext(schedule: Schedule, now: number, random: () => number = Math.random): number {
  switch (schedule.kind) {
    case 'off':
      return Number.POSITIVE_INFINITY;
    case 'every':
      return jittered(schedule.ms, random);
    case 'cron':
      return nextTurn(schedule.expression, now) - now + Math.round(CRON_SPREAD_MS * random());
  }
}

/** node-cron tells the next turn after the present moment only. */
function nextTurn(expression: string, now: number): number {
  const task = createTask(expression, () => {});
  try {
    const [first] = task.getNextRuns(1);
    return first?.getTime() ?? now + 60_000;
  } finally {
    void task.destroy();
  }
}
