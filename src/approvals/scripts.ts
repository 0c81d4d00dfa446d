import { z } from 'zod';
import { COMMON, words } from '../coordinator/tasks/scripts.ts';
import { defineScript } from '../redis/script.ts';

const lists = (raw: unknown): string[][] => z.array(z.array(z.coerce.string())).parse(raw);

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
    due_us: 'number',
  },
  reply: words,
});
export const respond = defineScript({
  file: new URL('./lua/respond.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, by: 'string', answers: 'json', dry: 'number' },
  reply: lists,
});
export const withdraw = defineScript({
  file: new URL('./lua/withdraw.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, approval: 'string', by: 'string', reason: 'string', due_us: 'number' },
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
    due_us: 'number',
  },
  reply: words,
});
export const force = defineScript({
  file: new URL('./lua/force.lua', import.meta.url),
  keys: [],
  args: {
    ...COMMON,
    task: 'string',
    by: 'string',
    reason: 'string',
    ticket: 'string',
    hash: 'string',
    version: 'string',
    life_us: 'number',
  },
  reply: words,
});
export const comment = defineScript({
  file: new URL('./lua/comment.lua', import.meta.url),
  keys: [],
  args: { ...COMMON, task: 'string', by: 'string', text: 'string' },
  reply: words,
});
