import { expect, test } from 'vitest';
import { redisFailure } from '../../src/redis/failure.ts';

const named = (message: string, more: object = {}) => Object.assign(new Error(message), more);

/** What real servers and the client library say; how they come to say it is tried in connection.test.ts. */
test.each([
  ['REDIS_UNAVAILABLE', named('connect ECONNREFUSED 127.0.0.1:1', { code: 'ECONNREFUSED' })],
  ['REDIS_UNAVAILABLE', named('connect ENOENT /run/redis.sock', { code: 'ENOENT' })],
  ['REDIS_UNAVAILABLE', named('getaddrinfo ENOTFOUND db', { code: 'ENOTFOUND' })],
  ['REDIS_UNAVAILABLE', named('LOADING Redis is loading the dataset in memory')],
  ['REDIS_UNAVAILABLE', named("READONLY You can't write against a read only replica.")],
  ['REDIS_UNAVAILABLE', named("OOM command not allowed when used memory > 'maxmemory'.")],
  ['REDIS_UNAVAILABLE', named('MISCONF Errors writing to the AOF file: No space left on device')],
  ['REDIS_UNAVAILABLE', named('BUSY Redis is busy running a script.')],
  ['REDIS_UNAVAILABLE', named('ERR max number of clients reached')],
  ['REDIS_UNAVAILABLE', named("Stream isn't writeable and enableOfflineQueue options is false")],
  ['REDIS_UNAVAILABLE', named("Cluster isn't ready and enableOfflineQueue options is false")],
  [
    'REDIS_UNAVAILABLE',
    named('Failed to refresh slots cache.', { lastNodeError: named('connect', { code: 'ECONNREFUSED' }) }),
  ],
  [
    'REDIS_REFUSED',
    named('Failed to refresh slots cache.', { lastNodeError: named('WRONGPASS invalid username-password pair') }),
  ],
  ['REDIS_REFUSED', named('NOAUTH Authentication required.')],
  ['REDIS_REFUSED', named("NOPERM this user has no permissions to run the 'info' command")],
  ['REDIS_KEY_FOREIGN', named('WRONGTYPE Operation against a key holding the wrong kind of value')],
  ['REDIS_REPLY_UNKNOWN', named('Reached the max retries', { name: 'MaxRetriesPerRequestError' })],
  ['REDIS_REPLY_UNKNOWN', named('Command timed out')],
  ['REDIS_REPLY_UNKNOWN', named('Connection is closed.')],
  ['REDIS_REPLY_UNKNOWN', named('Command aborted due to connection close')],
])('%s: %s', (code, error) => {
  expect(redisFailure(error, 'there')).toMatchObject({ code, details: { address: 'there' }, cause: expect.any(Error) });
});

test.each([
  ['a wrong command', named("ERR unknown command 'FLY'")],
  ['an error of our own', new TypeError('x is not a function')],
  ['a text', 'ECONNREFUSED'],
])('%s is none of its failures', (_, error) => {
  expect(redisFailure(error, 'there')).toBeUndefined();
});
