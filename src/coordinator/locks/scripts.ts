import { z } from 'zod';
import { KEY_TABLE } from '../../redis/keys.ts';
import { defineScript } from '../../redis/script.ts';
import { LEASE_CLASSES } from './lock.ts';
import { COMPANIONS } from './lock-keys.ts';

/** What every script over locks is told; see lua/_locks.lua. */
const COMMON = { shape: 'string', agent: 'string' } as const;

/** What they know. The lists are those of one server: in a cluster no script may touch them. */
const constants = {
  ...COMPANIONS,
  registry: KEY_TABLE.lockRegistry.pattern,
  waiting: KEY_TABLE.waitedLocks.pattern,
  events: KEY_TABLE.events.pattern.replace('<eventType>', 'lock'),
  grace_us: LEASE_CLASSES.agent.graceMs * 1000,
};

/** What a script answered, and what it could not tell the event stream itself. */
export interface Reply<R> {
  readonly reply: R;
  readonly told: readonly string[];
}

const texts = z.array(z.union([z.string(), z.number()]).transform(String));
const NOTHING: readonly string[] = [];

/** Words and numbers, as texts, in a list or, where that says it all, in one text. Checked by hand: this runs on every call. */
function words(raw: unknown): Reply<readonly string[]> {
  if (typeof raw === 'string') return { reply: raw.split(' '), told: NOTHING };
  if (!Array.isArray(raw)) throw new Error('not a list');
  if (Array.isArray(raw[0])) return { reply: texts.parse(raw[0]), told: texts.parse(raw[1]) };
  return { reply: raw.map(String), told: NOTHING };
}

/** One text per request. */
function answers(raw: unknown): readonly string[] {
  if (!Array.isArray(raw)) throw new Error('not a list');
  return raw.map(String);
}

export const acquire = defineScript({
  file: new URL('./lua/acquire.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: {
    ...COMMON,
    lock_id: 'string',
    lease_us: 'number',
    purpose: 'string',
    wait: 'string',
    lease_class: 'string',
    hold_us: 'number',
  },
  defaults: {
    lease_us: LEASE_CLASSES.process.leaseMs * 1000,
    purpose: '',
    wait: '',
    lease_class: 'process',
    hold_us: 0,
  },
  reply: words,
});

/** The usual acquires and releases of one turn; see lua/acquires.lua and lua/releases.lua. */
export const acquires = defineScript({
  file: new URL('./lua/acquires.lua', import.meta.url),
  keys: [],
  constants,
  args: { asked: 'json' },
  reply: answers,
});
export const releases = defineScript({
  file: new URL('./lua/releases.lua', import.meta.url),
  keys: [],
  constants,
  args: { asked: 'json' },
  reply: answers,
});

export const heartbeat = defineScript({
  file: new URL('./lua/heartbeat.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: { ...COMMON, lock_id: 'string', extend_us: 'number', extend_agent_us: 'number' },
  reply: words,
});

/** Of a release: nobody who waits asks in the same call. */
export const NOBODY_ALONG = { next_id: '', next_lease_us: 0, next_purpose: '' } as const;

export const release = defineScript({
  file: new URL('./lua/release.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: {
    ...COMMON,
    lock_id: 'string',
    forget: 'number',
    next_id: 'string',
    next_lease_us: 'number',
    next_purpose: 'string',
  },
  defaults: { forget: 0, ...NOBODY_ALONG },
  reply: words,
});

export const leave = defineScript({
  file: new URL('./lua/leave.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: { ...COMMON, lock_id: 'string', since_us: 'number', word_us: 'number', cycle: 'string' },
  reply: words,
});

export const reap = defineScript({
  file: new URL('./lua/reap.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: { ...COMMON, patience_us: 'number' },
  reply: words,
});

export const capacity = defineScript({
  file: new URL('./lua/capacity.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: { ...COMMON, max_tasks: 'number', status: 'string' },
  reply: words,
});

export const inspect = defineScript({
  file: new URL('./lua/inspect.lua', import.meta.url),
  keys: [],
  keyList: 'all',
  constants,
  args: COMMON,
  reply: words,
});

export const due = defineScript({
  file: new URL('./lua/due.lua', import.meta.url),
  keys: ['list'],
  args: { limit: 'number' },
  reply: (raw) => z.array(z.string()).parse(raw),
});

export const nextDue = defineScript({
  file: new URL('./lua/next-due.lua', import.meta.url),
  keys: ['list'],
  args: {},
  reply: (raw) => (raw === null ? undefined : z.coerce.number().parse(raw)),
});

export const schedule = defineScript({
  file: new URL('./lua/schedule.lua', import.meta.url),
  keys: ['list'],
  args: { lock: 'string', in_us: 'number', unless_there: 'number' },
  reply: (raw) => z.literal('OK').parse(raw),
});
