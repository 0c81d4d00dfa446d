import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { admit, takeTurn } from '../../src/ratelimit/rate-limit.ts';
import { aRedisRoom, type RedisRoom } from '../support/redis-room.ts';

let room: RedisRoom;
let key: string;
beforeAll(async () => {
  room = await aRedisRoom();
  key = room.keys.lockRateLimit('ann');
});
afterEach(() => room.reset());
afterAll(() => room[Symbol.asyncDispose]());

const limit = { perMinute: 60, burst: 3 };
const ask = () => takeTurn(room.scripts, key, limit);
const admitted = async (times: number) => {
  const verdicts = [];
  for (let at = 0; at < times; at += 1) verdicts.push(await ask());
  return verdicts.filter(({ outcome }) => outcome === 'admitted').length;
};

test('admits a burst at once and says how many are left', async () => {
  expect(await ask()).toEqual({ outcome: 'admitted', left: 2 });
  expect(await ask()).toEqual({ outcome: 'admitted', left: 1 });
  expect(await ask()).toMatchObject({ outcome: 'admitted' });
});

test('says how long to wait, and admits one call after exactly that', async () => {
  await admitted(3);
  const refused = await ask();
  expect(refused).toMatchObject({ outcome: 'limited' });
  const wait = refused.outcome === 'limited' ? refused.retryAfterMs : 0;
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(1_000);
  room.shift(wait);
  expect(await admitted(2)).toBe(1);
});

test('never admits more than a burst and the rate in any stretch of time', async () => {
  let total = 0;
  for (let second = 0; second < 10; second += 1) {
    total += await admitted(5);
    room.shift(1_000);
  }
  // The test itself takes some of the time that counts.
  expect(total).toBeGreaterThanOrEqual(3 + 9);
  expect(total).toBeLessThanOrEqual(3 + 10);
});

test('a refused call costs nothing', async () => {
  await admitted(20);
  room.shift(1_000);
  expect(await admitted(1)).toBe(1);
});

test('the key expires by itself, never later than a burst takes', async () => {
  await admitted(3);
  const ttl = await room.client.pttl(key);
  expect(ttl).toBeGreaterThan(0);
  expect(ttl).toBeLessThanOrEqual(3_000);
});

test('a clock that was set back makes nobody wait longer than a burst takes', async () => {
  room.shift(3_600_000);
  await admitted(3);
  room.shift(-3_600_000);
  const refused = await ask();
  expect(refused.outcome === 'limited' && refused.retryAfterMs).toBeLessThanOrEqual(3_000);
});

test('a value that is no number counts as none', async () => {
  await room.client.set(key, 'plenty', 'EX', 60);
  expect(await ask()).toMatchObject({ outcome: 'admitted' });
});

test('many at once share one limit', async () => {
  const verdicts = await Promise.all(Array.from({ length: 40 }, ask));
  expect(verdicts.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(3);
});

test('no limit means no key', async () => {
  expect(await takeTurn(room.scripts, key, { perMinute: 0, burst: 1 })).toMatchObject({ outcome: 'admitted' });
  expect(await room.client.exists(key)).toBe(0);
});

test('as a refusal it says who, how much and when again', async () => {
  await admitted(3);
  const refusal = admit(room.scripts, key, limit, { who: 'ann', what: 'asking for locks' });
  await expect(refusal).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    message: expect.stringContaining('ann'),
    details: { perMinute: 60, retryAfterSeconds: expect.any(Number) },
  });
});
