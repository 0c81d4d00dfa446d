import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { silentLog } from '../../src/log.ts';
import { connectRedis } from '../../src/redis/connection.ts';
import { refuseEviction } from '../../src/redis/eviction.ts';
import { runRedis } from '../support/redis-process.ts';

test.each([
  ['allkeys-lru', '100mb', 'REDIS_EVICTS'],
  ['volatile-ttl', '100mb', 'REDIS_EVICTS'],
  ['noeviction', '100mb', undefined],
  ['allkeys-lru', '0', undefined],
])('a server with the policy %s and %s of memory: %s', async (policy, limit, code) => {
  await using server = await runRedis({ 'maxmemory-policy': policy, maxmemory: limit });
  const connection = connectRedis({
    target: () => ({ kind: 'standalone', address: 'here', options: { port: server.port } }),
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 5_000,
    connectTimeoutMs: 5_000,
    name: 'test',
  });
  await connection.start();
  onTestFinished(() => connection.stop());
  const start = refuseEviction(connection).start();
  if (code) await expect(start).rejects.toMatchObject({ code, message: expect.stringContaining(policy) });
  else await expect(start).resolves.toBeUndefined();
});
