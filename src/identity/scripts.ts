import { defineScript } from '../redis/script.ts';

export const touch = defineScript({
  file: new URL('./lua/touch.lua', import.meta.url),
  keys: ['session'],
  args: { at: 'string' },
  reply: (raw) => raw === 1,
});
