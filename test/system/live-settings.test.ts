import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Logger } from '../../src/log.ts';
import { silentLog } from '../../src/log.ts';
import { LiveSettings } from '../../src/system/live-settings.ts';
import { type FakeClock, fakeClock } from '../support/clock.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';

let room: RedisRoom;
let clock: FakeClock;
let live: LiveSettings;
let warnings: unknown[];
beforeAll(async () => {
  room = await aRedisRoom();
});
beforeEach(() => {
  clock = fakeClock();
  warnings = [];
  const log: Logger = { ...silentLog, warn: (_sentence, fields) => void warnings.push(fields) };
  live = new LiveSettings({ ...room, clock, log, fromFile: { 'lock:max_ttl': 600 } });
});
afterEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

const plant = (name: Parameters<RedisRoom['keys']['config']>[0], text: string) =>
  room.client.set(room.keys.config(name), text);
const shown = async (name: string) => (await live.settings()).find((one) => one.name === name);

test('without anything in Redis the file decides, and below it the default', async () => {
  expect(await live.get('lock:max_ttl')).toBe(600);
  expect(await live.get('lock:default_ttl')).toBe(30);
  expect(await live.isEnabled('deadlock_detection')).toBe(true);
});

test('a value that somebody wrote with redis-cli is followed within a second', async () => {
  expect(await live.get('lock:default_ttl')).toBe(30);
  await plant('lock:default_ttl', '45');
  await clock.advance(1_000);
  expect(await live.get('lock:default_ttl')).toBe(45);
});

test('a second of calls costs one reading', async () => {
  await live.get('lock:default_ttl');
  const calls = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await room.client.info('commandstats'))?.[1]);
  const before = await calls();
  await Promise.all(Array.from({ length: 50 }, () => live.get('lock:max_ttl')));
  expect(await calls()).toBe(before);
});

test.each([
  ['lock:default_ttl', 'soon'],
  ['lock:default_ttl', '-1'],
  ['lock:default_ttl', '1.5'],
  ['lock:default_ttl', '1e12'],
  ['lock:max_ttl', ''],
  ['risk:thresholds', '{"medium":80,"high":50,"critical":75,"auto_approve":30}'],
  ['risk:thresholds', 'high'],
] as const)('%s = %j is reported once, and what lies below it is used', async (name, text) => {
  const before = (await shown(name))?.value;
  await plant(name, text);
  await clock.advance(1_000);
  expect(await live.get(name)).toEqual(before);
  await clock.advance(5_000);
  await live.get(name);
  expect(warnings).toMatchObject([{ name, found: text }]);
  expect(await shown(name)).toMatchObject({ value: before, problem: expect.stringContaining('cannot be used') });
});

test('what is set here is in force here at once, and told with who and what was before', async () => {
  await live.get('lock:max_ttl');
  expect(await live.set('lock:max_ttl', 120, 'ana')).toMatchObject({ value: 120, source: 'redis' });
  expect(await live.get('lock:max_ttl')).toBe(120);
  await live.set('lock:max_ttl', undefined, 'ana');
  expect(await live.get('lock:max_ttl')).toBe(600);
  const { events } = await room.events.latest({ streams: ['system'] });
  expect(events.map(({ event, payload }) => ({ event, ...payload }))).toEqual([
    { event: 'config:changed', name: 'lock:max_ttl', from: '', to: '120', by: 'ana' },
    { event: 'config:changed', name: 'lock:max_ttl', from: '120', to: '', by: 'ana' },
  ]);
});

test('thresholds are kept as JSON', async () => {
  const thresholds = { auto_approve: 10, medium: 20, high: 40, critical: 60 };
  expect(live.problemWith('risk:thresholds', thresholds)).toBeUndefined();
  await live.set('risk:thresholds', thresholds, 'ana');
  expect(await live.get('risk:thresholds')).toEqual(thresholds);
});

test('a flag is switched with the contract’s words', async () => {
  await live.setFlag('deadlock_detection', false, 'ana');
  expect(await room.client.get(room.keys.feature('deadlock_detection'))).toBe('disabled');
  expect(await live.isEnabled('deadlock_detection')).toBe(false);
  await room.client.set(room.keys.feature('deadlock_detection'), 'off');
  await clock.advance(1_000);
  expect(await live.isEnabled('deadlock_detection')).toBe(true);
  expect(await live.flags()).toContainEqual(expect.objectContaining({ problem: expect.any(String) }));
});

test('every change is audited with what it was before', async () => {
  await live.set('lock:default_ttl', 45, 'ada');
  await live.set('lock:default_ttl', undefined, 'ada');
  await live.setFlag('batch_approvals', false, 'ada');
  const rows = await room.client.xrange(room.keys.auditOutbox(), '-', '+');
  const field = (fields: readonly string[], name: string) => fields[fields.indexOf(name) + 1];
  expect(rows.map(([, fields]) => ['action', 'subject', 'from', 'to'].map((name) => field(fields, name)))).toEqual([
    ['config.set', 'config:lock:default_ttl', '', '45'],
    ['config.set', 'config:lock:default_ttl', '45', ''],
    ['flag.set', 'flag:batch_approvals', '', 'disabled'],
  ]);
});
