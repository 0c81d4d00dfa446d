import type { Clock } from '../../clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type Check, fail, ok, skipped, warn } from '../doctor.ts';

export interface RedisProbe {
  readonly client: RedisClient;
  readonly address: string;
  readonly embedded: boolean;
  readonly clock: Clock;
}

/** Beyond this, leases judged by Redis and times shown by this machine tell different stories. */
const SKEW_MS = 1_000;
const OLDEST = [6, 2];

/** What a Redis that answers may still have wrong. Managed servers often forbid CONFIG; then INFO must do. */
export function redisChecks({ client, address, embedded, clock }: RedisProbe): Check[] {
  const info = async (section: string) => parseInfo(await client.info(section));
  return [
    {
      name: 'redis version',
      run: async () => {
        const server = await info('server');
        const version = server.valkey_version ?? server.redis_version ?? '0';
        const [major = 0, minor = 0] = version.split('.').map(Number);
        const isOld = !server.valkey_version && (major < OLDEST[0]! || (major === OLDEST[0] && minor < OLDEST[1]!));
        const name = server.valkey_version ? 'Valkey' : 'Redis';
        return [
          isOld
            ? fail(`${name} ${version} at ${address} is too old`, 'Use Redis 6.2 or newer, or Valkey.')
            : ok(`${name} ${version} at ${address}${embedded ? ', embedded' : ''}`),
        ];
      },
    },
    {
      name: 'redis role',
      run: async () => {
        const { role } = await info('replication');
        return [
          role === 'slave'
            ? fail(
                `${address} is a replica: it takes no writes`,
                'Point REDIS_URL at the master, or use redis.mode sentinel.',
              )
            : ok('takes writes'),
        ];
      },
    },
    {
      name: 'redis eviction',
      run: async () => {
        const { maxmemory_policy: policy, maxmemory } = await info('memory');
        if (policy === undefined) return [skipped('this server does not say its eviction policy')];
        if (policy === 'noeviction') return [ok('noeviction')];
        const says = `maxmemory-policy is ${policy}: when memory is full Redis drops locks and tasks without a word`;
        const fix = 'redis-cli CONFIG SET maxmemory-policy noeviction   (and in redis.conf)';
        return [maxmemory === '0' ? warn(`${says} (no maxmemory is set yet)`, fix) : fail(says, fix)];
      },
    },
    {
      name: 'redis persistence',
      run: async () => {
        const state = await info('persistence');
        const saves = await configValue(client, 'save');
        if (state.aof_enabled === '1') {
          return [
            state.aof_last_write_status === 'ok'
              ? ok('append-only file on')
              : fail(
                  'the append-only file could not be written',
                  'Look at the disk of the Redis server: df -h, and its log.',
                ),
          ];
        }
        if (saves === undefined)
          return [warn('append-only file is off; snapshots unknown', 'redis-cli CONFIG SET appendonly yes')];
        if (saves === '')
          return [
            fail(
              'nothing is persisted: a restart of Redis loses every task and lock',
              'redis-cli CONFIG SET appendonly yes   (and in redis.conf)',
            ),
          ];
        return [
          warn(
            'only snapshots: a crash loses what came after the last one',
            'redis-cli CONFIG SET appendonly yes   (and in redis.conf)',
          ),
        ];
      },
    },
    {
      name: 'redis clock',
      run: async () => {
        const before = clock.now();
        const [seconds, micros] = await client.time();
        const middle = (before + clock.now()) / 2;
        const skew = Math.round(Number(seconds) * 1000 + Number(micros) / 1000 - middle);
        const says = `Redis is ${Math.abs(skew)} ms ${skew < 0 ? 'behind' : 'ahead of'} this machine`;
        return [
          Math.abs(skew) > SKEW_MS
            ? warn(says, 'Run a time service (chrony, systemd-timesyncd) on both machines.')
            : ok(says),
        ];
      },
    },
    {
      name: 'redis scripts',
      run: async () => {
        const answer = await client.eval("return redis.call('TIME')[1]", 0).catch((error: Error) => error);
        return [
          answer instanceof Error
            ? fail(
                `scripts are refused: ${answer.message}`,
                'Allow EVAL and EVALSHA for this user: ACL SETUSER … +@scripting',
              )
            : ok('scripts run'),
        ];
      },
    },
  ];
}

async function configValue(client: RedisClient, name: string): Promise<string | undefined> {
  try {
    const [, value] = await client.config('GET', name);
    return value;
  } catch {
    return undefined;
  }
}

function parseInfo(text: string): Partial<Record<string, string>> {
  return Object.fromEntries(
    text
      .split(/\r?\n/)
      .filter((line) => line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}
