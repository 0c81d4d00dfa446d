import { z } from 'zod';
import { defineScript } from '../redis/script.ts';

export const append = defineScript({
  file: new URL('./lua/append.lua', import.meta.url),
  keys: ['stream'],
  args: { fields: 'json' },
  reply: (raw) => z.string().parse(raw),
});
