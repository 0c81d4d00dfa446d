import { z } from 'zod';

/** A setting that lives in Redis: every daemon follows it within a second, and it wins over the file. */
interface LiveRow {
  readonly schema: z.ZodType;
  readonly fallback: unknown;
  readonly says: string;
}

const seconds = (min: number, max: number) => z.int().min(min).max(max);
const HOUR = 3600;
const DAY = 24 * HOUR;
const score = z.number().min(0).max(100);

/** `ade:config:*`, by name. */
export const LIVE_SETTINGS = {
  'lock:default_ttl': {
    schema: seconds(1, DAY),
    fallback: 30,
    says: 'Seconds that a lock of a process lives without a heartbeat',
  },
  'lock:max_ttl': { schema: seconds(1, DAY), fallback: 900, says: 'Seconds that a lock may be asked or renewed for' },
  'lock:heartbeat_interval': { schema: seconds(1, HOUR), fallback: 10, says: 'Seconds between two heartbeats' },
  'approval:default_timeout': {
    schema: seconds(1, 90 * DAY),
    fallback: 2 * DAY,
    says: 'Seconds until an unanswered request escalates',
  },
  'approval:max_timeout': {
    schema: seconds(1, 90 * DAY),
    fallback: 14 * DAY,
    says: 'Seconds that a request may be given to answer',
  },
  'approval:reminders': {
    schema: z.string().regex(/^(off|[1-9]\d?%(,[1-9]\d?%){0,9})$/, 'must be like 50%,90%, or off'),
    fallback: '50%,90%',
    says: 'After which parts of the time a reviewer is reminded; off: never',
  },
  'approval:on_call': {
    schema: z.string().max(200),
    fallback: '',
    says: 'Who is told of every escalation, and asked when nobody else is left: a user, a role, a group, or a name that only notifications know',
  },
  'approval:backlog': {
    schema: z.int().min(0).max(1_000_000),
    fallback: 500,
    says: 'Open requests from which on there is a backlog: priorities rise, and whoever is on call is told; 0: never',
  },
  'task:default_timeout': { schema: seconds(1, 30 * DAY), fallback: HOUR, says: 'Seconds that a task may run' },
  'risk:thresholds': {
    schema: z
      .strictObject({ auto_approve: score, medium: score, high: score, critical: score })
      .refine(({ medium, high, critical }) => medium < high && high < critical, 'must rise: medium, high, critical'),
    fallback: { auto_approve: 30, medium: 25, high: 50, critical: 75 },
    says: 'Scores from which a risk is medium, high, critical, and below which nobody need be asked',
  },
} as const satisfies Record<string, LiveRow>;

/** `ade:feature:*`, by name: what can be switched off while the daemon runs. */
export const FLAGS = {
  deadlock_detection: { fallback: true, says: 'Look for agents that wait for one another, and free them' },
  auto_approve_low_risk: { fallback: true, says: 'Let changes of low risk pass without a person' },
  batch_approvals: { fallback: true, says: 'Let several approvals be answered at once' },
} as const satisfies Record<string, { readonly fallback: boolean; readonly says: string }>;

export type LiveName = keyof typeof LIVE_SETTINGS;
export type LiveValues = { readonly [N in LiveName]: z.output<(typeof LIVE_SETTINGS)[N]['schema']> };
export type FlagName = keyof typeof FLAGS;

export const LIVE_NAMES = Object.keys(LIVE_SETTINGS) as LiveName[];
export const FLAG_NAMES = Object.keys(FLAGS) as FlagName[];
