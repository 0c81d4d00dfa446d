import { defineScript } from '../redis/script.ts';

export const touch = defineScript({
  file: new URL('./lua/touch.lua', import.meta.url),
  keys: ['session'],
  args: { at: 'string' },
  reply: (raw) => raw === 1,
});
export const beginSession = defineScript({
  file: new URL('./lua/begin-session.lua', import.meta.url),
  keys: ['session', 'index'],
  args: { session: 'string', user: 'string', fields: 'json', seconds: 'number', index_seconds: 'number' },
  reply: (raw) => raw === 1,
});
export const endSession = defineScript({
  file: new URL('./lua/end-session.lua', import.meta.url),
  keys: ['session', 'index'],
  args: { session: 'string', user: 'string' },
  reply: (raw) => raw === 1,
});
