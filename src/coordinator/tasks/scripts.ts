import { z } from 'zod';
import { defineScript } from '../../redis/script.ts';
import { LEASE_CLASSES, type LeaseClass } from '../locks/lock.ts';

/** What every script over tasks is told; see lua/_task.lua. */
export const COMMON = {
  head: 'string',
  agent: 'string',
  lock_id: 'string',
  publish: 'string',
  grace_us: 'number',
  window: 'number',
  exclusive: 'number',
} as const;
/** What those are told that keep the public list and need nothing else of it. */
const LIST = { head: 'string', window: 'number', exclusive: 'number' } as const;
/** How long a lease lasts, for scripts that may grant one. */
const LEASE = { lease_us: 'number', lease_class: 'string', hold_us: 'number', purpose: 'string' } as const;

/** How long leases last, and with their grace: parts of the text, for they are the same in each call. */
const us = (name: LeaseClass) => LEASE_CLASSES[name].leaseMs * 1000;
const withGraceUs = (name: LeaseClass) => us(name) + LEASE_CLASSES[name].graceMs * 1000;
const LEASES = {
  process_us: us('process'),
  process_end_us: withGraceUs('process'),
  agent_us: us('agent'),
  agent_end_us: withGraceUs('agent'),
};

/** Words and numbers, as texts. Checked by hand: this runs on every call. */
export function words(raw: unknown): readonly string[] {
  if (!Array.isArray(raw)) throw new Error('not a list');
  return raw.map(String);
}
function replies(raw: unknown): readonly (readonly string[])[] {
  if (!Array.isArray(raw)) throw new Error('not a list');
  return raw.map(words);
}
const lists = (raw: unknown): string[][] => z.array(z.array(z.string())).parse(raw);

export const admit = defineScript({
  file: new URL('./lua/admit.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, ...LEASE, tasks: 'json' },
  reply: words,
});
export const number = defineScript({
  file: new URL('./lua/number.lua', import.meta.url),
  keys: [],
  args: { count: 'number' },
  reply: (raw) => z.int().parse(raw),
});
export const amend = defineScript({
  file: new URL('./lua/amend.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, changes: 'json' },
  reply: words,
});
export const claim = defineScript({
  file: new URL('./lua/claim.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    ...LEASE,
    agent_type: 'string',
    lanes: 'json',
    capabilities: 'json',
    task: 'string',
    limit: 'number',
    from: 'number',
    places: 'number',
    raw_us: 'number',
  },
  reply: words,
});
export const beat = defineScript({
  file: new URL('./lua/beat.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, ...LEASE, task: 'string', token: 'string', extend_us: 'number', extend_agent_us: 'number' },
  reply: words,
});
export const usualClaims = defineScript({
  file: new URL('./lua/usual-claims.lua', import.meta.url),
  keys: [],
  args: { head: 'string', claims: 'texts' },
  constants: LEASES,
  reply: replies,
});
export const usualCompletions = defineScript({
  file: new URL('./lua/usual-completions.lua', import.meta.url),
  keys: [],
  args: { ...LIST, completions: 'texts' },
  reply: replies,
});
export const writeUp = defineScript({
  file: new URL('./lua/write-up.lua', import.meta.url),
  keys: [],
  args: { ...LIST, most: 'number', young: 'number' },
  reply: (raw) => z.tuple([z.int(), z.int()]).parse(raw),
});
export const report = defineScript({
  file: new URL('./lua/report.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', token: 'string', note: 'string', percent: 'string' },
  reply: words,
});
export const complete = defineScript({
  file: new URL('./lua/complete.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', token: 'string', rest: 'string', say_raw: 'number' },
  reply: words,
});
export const fail = defineScript({
  file: new URL('./lua/fail.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    task: 'string',
    token: 'string',
    force: 'number',
    class: 'string',
    error: 'string',
    rest: 'string',
    delay_us: 'number',
    max_attempts: 'number',
    pause_type: 'string',
    pause_until: 'number',
  },
  reply: words,
});
export const drop = defineScript({
  file: new URL('./lua/drop.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', token: 'string', reason: 'string' },
  reply: words,
});
export const cancel = defineScript({
  file: new URL('./lua/cancel.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', reason: 'string', by: 'string' },
  reply: words,
});
export const reopen = defineScript({
  file: new URL('./lua/reopen.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', reason: 'string', by: 'string', gate: 'number' },
  reply: words,
});
export const judge = defineScript({
  file: new URL('./lua/judge.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    ...LEASE,
    task: 'string',
    to: 'string',
    by: 'string',
    reason: 'string',
    rest: 'string',
    unless_ended: 'number',
  },
  reply: words,
});
export const lapse = defineScript({
  file: new URL('./lua/lapse.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string' },
  reply: words,
});
export const pause = defineScript({
  file: new URL('./lua/pause.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, what: 'string', value: 'string', mark: 'string' },
  reply: () => undefined,
});
export const reconsider = defineScript({
  file: new URL('./lua/reconsider.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, tasks: 'json' },
  reply: (raw) => z.int().parse(raw),
});
export const due = defineScript({
  file: new URL('./lua/due.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, limit: 'number' },
  reply: words,
});
export const overdue = defineScript({
  file: new URL('./lua/overdue.lua', import.meta.url),
  keys: [],
  args: { limit: 'number', looks: 'number' },
  reply: (raw) => {
    const [next, suspects, blind] = z.tuple([z.string(), z.array(z.string()), z.string()]).parse(raw);
    return { nextSeconds: next === '' ? undefined : Number(next), suspects, blindMs: Number(blind) * 1000 };
  },
});
export const reconcile = defineScript({
  file: new URL('./lua/reconcile.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, ...LEASE, raw_us: 'number' },
  reply: lists,
});
export const mirror = defineScript({
  file: new URL('./lua/mirror.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, tasks: 'json', looks: 'number', queue: 'number' },
  reply: (raw) => z.int().parse(raw),
});
export const page = defineScript({
  file: new URL('./lua/page.lua', import.meta.url),
  keys: ['index'],
  args: { score: 'string', member: 'string', count: 'number' },
  reply: words,
});
export const reindex = defineScript({
  file: new URL('./lua/reindex.lua', import.meta.url),
  keys: [],
  args: { tasks: 'json' },
  reply: (raw) => z.int().parse(raw),
});
export const drifted = defineScript({
  file: new URL('./lua/drifted.lua', import.meta.url),
  keys: [],
  args: { from: 'number', count: 'number' },
  reply: lists,
});
