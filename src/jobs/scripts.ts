import { z } from 'zod';
import { defineScript } from '../redis/script.ts';
import { JOB_TYPES, type JobType } from './job.ts';

const members = z.array(z.string());

export const plan = defineScript({
  file: new URL('./lua/plan.lua', import.meta.url),
  keys: ['scheduled'],
  args: { member: 'string', in_seconds: 'number' },
  reply: (raw) => raw === 1,
});

export const hasten = defineScript({
  file: new URL('./lua/hasten.lua', import.meta.url),
  keys: ['scheduled'],
  args: { member: 'string', in_seconds: 'number' },
  reply: () => undefined,
});

const seconds = z.coerce.number();

export const turn = defineScript({
  file: new URL('./lua/turn.lua', import.meta.url),
  keys: ['scheduled'],
  keyList: 'queues',
  args: { periodic: 'json', limit: 'number' },
  constants: { types: JOB_TYPES },
  reply: (raw): Turn => {
    const found = z.array(z.tuple([z.enum(JOB_TYPES as [JobType, ...JobType[]]), members]));
    const [now, next, refused, due] = z.tuple([seconds, z.string(), members, found]).parse(raw);
    return { now, nextSeconds: next === '' ? undefined : Number(next), refused, due };
  },
});

/** What there is to do, and when to look again. */
export interface Turn {
  readonly now: number;
  readonly nextSeconds: number | undefined;
  readonly refused: readonly string[];
  readonly due: readonly (readonly [JobType, readonly string[]])[];
}

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
