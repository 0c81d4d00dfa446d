import { defineScript } from '../redis/script.ts';

export const nameStatus = defineScript({
  file: new URL('./lua/name-status.lua', import.meta.url),
  keys: ['request'],
  args: { number: 'string', word: 'string' },
  reply: (raw) => raw === 1,
});
