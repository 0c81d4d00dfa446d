import { z } from 'zod';
import { defineScript } from '../redis/script.ts';

export const unlist = defineScript({
  file: new URL('./lua/unlist.lua', import.meta.url),
  keys: [],
  args: { head: 'string', state: 'string', tasks: 'json' },
  reply: (raw) => z.int().parse(raw),
});
export const renew = defineScript({
  file: new URL('./lua/renew.lua', import.meta.url),
  keys: [],
  args: { head: 'string', tasks: 'json', ended: 'json' },
  reply: (raw) => z.int().parse(raw),
});
