import { z } from 'zod';
import { defineScript } from '../redis/script.ts';

export type Verdict =
  | { readonly outcome: 'admitted'; readonly left: number }
  | { readonly outcome: 'limited'; readonly retryAfterMs: number };

const reply = z.tuple([z.enum(['ADMITTED', 'LIMITED']), z.coerce.number()]);

export const take = defineScript({
  file: new URL('./lua/take.lua', import.meta.url),
  keys: ['limit'],
  args: { interval_us: 'number', burst: 'number' },
  reply: (raw): Verdict => {
    const [word, amount] = reply.parse(raw);
    return word === 'ADMITTED'
      ? { outcome: 'admitted', left: amount }
      : { outcome: 'limited', retryAfterMs: Math.ceil(amount / 1000) };
  },
});
