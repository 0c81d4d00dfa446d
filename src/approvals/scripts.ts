import { z } from 'zod';
import { COMMON, words } from '../coordinator/tasks/scripts.ts';
import { defineScript } from '../redis/script.ts';

const list = z.array(z.string());
const lists = (raw: unknown): string[][] => z.array(z.array(z.coerce.string())).parse(raw);

/** How long people have; see termArgs. */
const TERM = { span_us: 'number', remind: 'number' } as const;

export const submit = defineScript({
  file: new URL('./lua/submit.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    task: 'string',
    by: 'string',
    version: 'string',
    hash: 'string',
    preview: 'string',
    risk: 'json',
    outcome: 'string',
    because: 'string',
    needs: 'string',
    questions: 'json',
    priority: 'string',
    risk_score: 'number',
    policies: 'string',
    ...TERM,
  },
  reply: words,
});
export const respond = defineScript({
  file: new URL('./lua/respond.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, by: 'string', answers: 'json', dry: 'number', first: 'number' },
  reply: lists,
});
export const withdraw = defineScript({
  file: new URL('./lua/withdraw.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, approval: 'string', by: 'string', reason: 'string', ...TERM },
  reply: words,
});
export const delegate = defineScript({
  file: new URL('./lua/delegate.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    approval: 'string',
    by: 'string',
    to: 'string',
    to_name: 'string',
    reason: 'string',
    before: 'string',
    needs: 'string',
    ...TERM,
  },
  reply: words,
});
/** What takes two admins. */
const TWO = {
  ...COMMON,
  task: 'string',
  by: 'string',
  reason: 'string',
  ticket: 'string',
  hash: 'string',
  version: 'string',
  policy: 'string',
  life_us: 'number',
} as const;

export const force = defineScript({
  file: new URL('./lua/force.lua', import.meta.url),
  keys: [],
  args: TWO,
  reply: words,
});
export const waive = defineScript({
  file: new URL('./lua/waive.lua', import.meta.url),
  keys: [],
  args: { ...TWO, before: 'string', needs: 'string' },
  reply: words,
});
export const comment = defineScript({
  file: new URL('./lua/comment.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', by: 'string', text: 'string' },
  reply: words,
});
export const handOver = defineScript({
  file: new URL('./lua/hand-over.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    ...TERM,
    by: 'string',
    approval: 'string',
    kind: 'string',
    wake: 'string',
    before: 'string',
    needs: 'string',
    outcome: 'string',
    to: 'string',
    to_name: 'string',
    because: 'string',
    on_call: 'string',
  },
  reply: words,
});
export const lapse = defineScript({
  file: new URL('./lua/lapse.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, ...TERM, by: 'string', task: 'string' },
  reply: words,
});
export const remind = defineScript({
  file: new URL('./lua/remind.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, by: 'string', approval: 'string', parts: 'json' },
  reply: words,
});
export const stand = defineScript({
  file: new URL('./lua/stand.lua', import.meta.url),
  keys: ['standing', 'events'],
  args: { roles: 'json', gone: 'json' },
  reply: (raw) => raw === 1,
});
export const agenda = defineScript({
  file: new URL('./lua/agenda.lua', import.meta.url),
  keys: ['queue', 'reminders'],
  args: { limit: 'number' },
  reply: (raw) => {
    const [day, next, due, toRemind] = z.tuple([z.string(), z.string(), list, list]).parse(raw);
    return { day, nextSeconds: next === '' ? undefined : Number(next), due, toRemind };
  },
});
export const backlog = defineScript({
  file: new URL('./lua/backlog.lua', import.meta.url),
  keys: ['queue', 'backlog', 'events'],
  args: { limit: 'number', on_call: 'string' },
  reply: words,
});
export const raise = defineScript({
  file: new URL('./lua/raise.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, by: 'string', approval: 'string' },
  reply: words,
});
export const day = defineScript({
  file: new URL('./lua/day.lua', import.meta.url),
  keys: [],
  args: { person: 'string', days: 'number' },
  reply: (raw): readonly (readonly string[])[] => lists(raw),
});
