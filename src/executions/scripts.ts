import { COMMON, words } from '../coordinator/tasks/scripts.ts';
import { defineScript } from '../redis/script.ts';

const LEASED = { ...COMMON, task: 'string', token: 'string' } as const;

export const stash = defineScript({
  file: new URL('./lua/stash.lua', import.meta.url),
  keys: [],
  args: {
    ...LEASED,
    stash: 'string',
    stash_key: 'string',
    stash_store: 'string',
    encoding: 'string',
    bytes: 'string',
    sha256: 'string',
    command: 'string',
  },
  reply: words,
});
export const output = defineScript({
  file: new URL('./lua/output.lua', import.meta.url),
  keys: [],
  args: {
    ...LEASED,
    output: 'string',
    output_key: 'string',
    output_store: 'string',
    bytes: 'string',
    weak: 'number',
  },
  reply: words,
});
export const rolledBack = defineScript({
  file: new URL('./lua/rolled-back.lua', import.meta.url),
  keys: [],
  args: { ...LEASED, person: 'number', outcome: 'string', reason: 'string' },
  reply: words,
});
