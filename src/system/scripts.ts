import { z } from 'zod';
import { defineScript } from '../redis/script.ts';

export const changeSetting = defineScript({
  file: new URL('./lua/change-setting.lua', import.meta.url),
  keys: ['setting', 'events'],
  args: { value: 'string', event: 'string', payload: 'json' },
  reply: (raw) => z.string().parse(raw),
});
