import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseLock } from '../../../src/coordinator/locks/lock.ts';
import { undeclaredKeys } from '../../support/undeclared-keys.ts';
import { aLockRoom, asks, held, type LockRoom } from './room.ts';

let room: LockRoom;
let ask: ReturnType<typeof asks>;
beforeAll(async () => {
  room = await aLockRoom();
  ask = asks(room.locks);
});
beforeEach(() => room.reset());
afterEach(async () => expect(await undeclaredKeys(room.redis.client())).toEqual([]));
afterAll(() => room.stop());

const FIRST = 'task:t-1';

test('grants a free task lock under the key and fields of the seed', async () => {
  const outcome = await ask('ann', FIRST, { purpose: 'migrate' });

  expect(outcome).toMatchObject({ outcome: 'granted', again: false, grants: [{ agent: 'ann', lockId: 'ann-1' }] });
  const redis = room.redis.client();
  const token = outcome.outcome === 'granted' ? String(outcome.grants[0]?.token) : '';
  const hash = await redis.hgetall('ade:lock:task:t-1');
  expect(hash).toEqual({
    holder_agent_id: 'ann',
    acquired_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    expires_at: expect.stringMatching(/Z$/),
    purpose: 'migrate',
    heartbeat_count: '0',
    queue_length: '0',
    lock_id: 'ann-1',
    fencing_token: token,
  });
  expect(Date.parse(hash.expires_at as string) - Date.parse(hash.acquired_at as string)).toBe(30_000);
  expect(await redis.pttl('ade:lock:task:t-1')).toBeGreaterThan(29_000);
  expect(await redis.smembers('ade:lock:index:agent:ann')).toEqual(['ade:lock:task:t-1']);
  const score = Number(await redis.zscore('ade:lock:registry', 'ade:lock:task:t-1'));
  expect(score * 1000).toBeCloseTo(Date.parse(hash.expires_at as string), -1);
  expect(await room.told()).toEqual(['acquired task:t-1 ann']);
});

test('gives the lock back, and recognises a second release', async () => {
  await ask('ann', FIRST);

  expect(await room.locks.release(held('ann', FIRST))).toMatchObject([{ outcome: 'released' }]);
  expect(await room.locks.release(held('ann', FIRST))).toMatchObject([{ outcome: 'already' }]);
  expect(await ask('bob', FIRST)).toMatchObject({ outcome: 'granted' });
  expect(await room.told()).toEqual(['acquired task:t-1 ann', 'released task:t-1 ann', 'acquired task:t-1 bob']);
});

test('says who holds a lock that is not to be had', async () => {
  await ask('ann', FIRST, { purpose: 'migrate' });

  expect(await ask('bob', FIRST)).toMatchObject({
    outcome: 'held',
    blocked: { lock: parseLock(FIRST), waiting: 0, holders: [{ agent: 'ann', purpose: 'migrate' }] },
  });
  expect(await room.redis.client().exists('ade:lock:task:t-1:queue')).toBe(0);
});
