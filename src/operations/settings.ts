import { z } from 'zod';
import { ReeveError } from '../errors.ts';
import { FLAG_NAMES, LIVE_NAMES } from '../system/live-table.ts';
import { defineOperation, type Operation } from './operation.ts';

const origin = {
  source: z.enum(['redis', 'file', 'default']),
  problem: z.string().optional().describe('What is in Redis, if it cannot be used'),
  says: z.string(),
};
const value = z.union([z.number(), z.string(), z.looseObject({})]);
const setting = z.object({ name: z.enum(LIVE_NAMES), value, ...origin }).meta({ id: 'LiveSetting' });
const flag = z
  .object({ name: z.enum(FLAG_NAMES), value: z.enum(['enabled', 'disabled']), ...origin })
  .meta({ id: 'Flag' });
const columns = ['name', 'value', 'source', 'says'];

/** What can be changed while the daemon runs. Any client may as well write the keys itself. */
export const settingOperations: readonly Operation[] = [
  defineOperation({
    name: 'config.live',
    summary: 'Show the settings that live in Redis',
    description: 'They win over the file. All daemons on the same Redis follow a change within a second.',
    access: 'read',
    input: z.object({}),
    output: z.object({ items: z.array(setting) }),
    errors: [],
    http: { method: 'GET', path: '/config/live' },
    cli: {
      words: 'config live',
      columns,
      examples: ['reeve config live'],
    },
    run: async ({ rooms }) => ({ items: await rooms.live.settings() }),
  }),
  defineOperation({
    name: 'config.set',
    summary: 'Change a setting that lives in Redis',
    access: 'admin',
    input: z.object({
      name: z.enum(LIVE_NAMES).describe('Which one'),
      value: value.describe('The new value; "default" goes back to the file or the default'),
    }),
    output: setting,
    errors: [],
    http: { method: 'PUT', path: '/config/live/{name}' },
    cli: {
      words: 'config set',
      args: ['name', 'value'],
      examples: ['reeve config set lock:max_ttl 600', 'reeve config set lock:max_ttl default'],
    },
    run: async ({ rooms, caller }, { name, value: given }) => {
      if (given === 'default') return rooms.live.set(name, undefined, caller.id);
      const problem = rooms.live.problemWith(name, given);
      if (problem) throw new ReeveError('INVALID_INPUT', { operation: 'config.set', command: 'config set', problem });
      return rooms.live.set(name, given, caller.id);
    },
  }),
  defineOperation({
    name: 'flag.list',
    summary: 'Show which features are on',
    access: 'read',
    input: z.object({}),
    output: z.object({ items: z.array(flag) }),
    errors: [],
    http: { method: 'GET', path: '/flags' },
    cli: { words: 'flag list', columns, examples: ['reeve flag list'] },
    run: async ({ rooms }) => ({ items: (await rooms.live.flags()).map(asFlag) }),
  }),
  defineOperation({
    name: 'flag.set',
    summary: 'Switch a feature on or off',
    access: 'admin',
    input: z.object({
      name: z.enum(FLAG_NAMES).describe('Which one'),
      value: z.enum(['enabled', 'disabled', 'default']).describe('"default" goes back to what it is without a word'),
    }),
    output: flag,
    errors: [],
    http: { method: 'PUT', path: '/flags/{name}' },
    cli: {
      words: 'flag set',
      args: ['name', 'value'],
      examples: ['reeve flag set deadlock_detection disabled', 'reeve flag set deadlock_detection default'],
    },
    run: async ({ rooms, caller }, { name, value }) =>
      asFlag(await rooms.live.setFlag(name, value === 'default' ? undefined : value === 'enabled', caller.id)),
  }),
];

const asFlag = <T extends { readonly value: boolean }>(state: T) => ({
  ...state,
  value: state.value ? ('enabled' as const) : ('disabled' as const),
});
