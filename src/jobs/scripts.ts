import { z } from 'zod';
import { defineScript } from '../redis/script.ts';
import { JOB_TYPES } from './job.ts';

const members = z.array(z.string());

export const plan = defineScript({
  file: new URL('./lua/plan.lua', import.meta.url),
  keys: ['scheduled'],
  args: { member: 'string', in_seconds: 'number' },
  reply: (raw) => raw === 1,
});

export const promote = defineScript({
  file: new URL('./lua/promote.lua', import.meta.url),
  keys: ['scheduled'],
  keyList: 'queues',
  args: { limit: 'number' },
  constants: { types: JOB_TYPES },
  reply: (raw) => members.parse(raw),
});

export const due = defineScript({
  file: new URL('./lua/due.lua', import.meta.url),
  keys: ['queue'],
  args: { limit: 'number' },
  reply: (raw) => {
    const [now, found] = z.tuple([z.coerce.number(), members]).parse(raw);
    return { now, members: found };
  },
});

export const unlock = defineScript({
  file: new URL('./lua/unlock.lua', import.meta.url),
  keys: ['lock'],
  args: { worker: 'string' },
  reply: (raw) => raw === 1,
});
