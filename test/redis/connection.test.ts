import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Connection, RedisClient } from '../../src/redis/connection.ts';
import { hangUp } from '../../src/redis/connection.ts';
import { redisFailure } from '../../src/redis/failure.ts';
import { redisTarget } from '../../src/redis/target.ts';
import { startCluster, type TestCluster } from '../support/cluster.ts';
import { failureOf } from '../support/failure.ts';
import { DURABLE, freePort, type RedisProcess, runRedis } from '../support/redis-process.ts';
import { aConnection, connected, targetOf } from '../support/rooms.ts';
import { startSentinels } from '../support/sentinel.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'open sesame/ö';
const NO_TLS = { verify: true };
const given = { mode: 'standalone', sentinelName: 'estate', tls: NO_TLS } as const;

/** What a caller of an operation would see of a failed command. */
const codeOf = (error: unknown) => redisFailure(error, 'there')?.code ?? String(error);
const outcome = (command: Promise<unknown>) => command.then(() => 'done', codeOf);

describe('one server', () => {
  let server: RedisProcess;
  let observer: Redis;
  beforeAll(async () => {
    server = await runRedis({ requirepass: PASSWORD, unixsocket: 'here.sock', ...DURABLE });
    observer = new Redis({ port: server.port, password: PASSWORD });
    observer.on('error', () => {});
  });
  afterEach(async () => {
    await until('the server is back', () => observer.ping().catch(() => false));
    await observer.flushall();
  });
  afterAll(async () => {
    observer.disconnect();
    await server[Symbol.asyncDispose]();
  });
  const here = () => targetOf({ port: server.port, password: PASSWORD });
  const clientsNamed = async (name: string) =>
    ((await observer.client('LIST')) as string).split('\n').filter((line) => line.includes(` name=${name}:`));

  describe('is reached', () => {
    test.each([
      ['TCP', () => `redis://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}/0`],
      ['a unix socket', () => `unix://:${encodeURIComponent(PASSWORD)}@${join(server.dir, 'here.sock')}`],
    ])('over %s', async (_, url) => {
      const connection = await connected(redisTarget({ ...given, url: url() }));

      expect(await connection.commands.set('greeting', 'hello')).toBe('OK');
      expect(connection.mode).toBe('standalone');
      expect(connection.server).toMatchObject({
        flavour: expect.stringMatching(/redis|valkey/),
        major: expect.any(Number),
      });
      expect(connection.server.major).toBeGreaterThanOrEqual(6);
      expect(connection.address).not.toContain('sesame');
    });

    test('in the database that the url names', async () => {
      const url = `redis://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${server.port}/5`;
      const connection = await connected(redisTarget({ ...given, url }));
      await connection.commands.set('elsewhere', '1');

      expect(await observer.exists('elsewhere')).toBe(0);
    });

    test('not with a wrong password: that is said at once, not after the time for connecting', async () => {
      const connection = aConnection(targetOf({ port: server.port, password: 'wrong' }), {
        connectTimeoutMs: 3_600_000,
      });

      await expect(connection.start()).rejects.toMatchObject({ code: 'REDIS_REFUSED' });
    });

    test('not without a password', async () => {
      const connection = aConnection(targetOf({ port: server.port }), { connectTimeoutMs: 3_600_000 });

      await expect(connection.start()).rejects.toMatchObject({ code: 'REDIS_REFUSED' });
    });

    test('not by a user who may not even ask what it is', async () => {
      await observer.call('ACL', 'SETUSER', 'narrow', 'on', '>narrow', '~*', '+ping', '+client', '+hello', '+auth');
      const connection = aConnection(targetOf({ port: server.port, username: 'narrow', password: 'narrow' }));

      await expect(connection.start()).rejects.toMatchObject({ code: 'REDIS_REFUSED' });
    });
  });

  test('that is not there is given up after the time for connecting, with what was wrong', async () => {
    const connection = aConnection(targetOf({ port: await freePort() }), { connectTimeoutMs: 200 });

    await expect(connection.start()).rejects.toMatchObject({
      code: 'REDIS_UNAVAILABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('that is not there does not keep a stop waiting', async () => {
    const connection = aConnection(targetOf({ port: await freePort() }), { connectTimeoutMs: 3_600_000 });
    const started = failureOf(connection.start());

    await connection.stop();

    expect(await started).toBeInstanceOf(Error);
  });

  test('is not there before the start nor after the stop', async () => {
    const connection = aConnection(here());
    expect(() => connection.commands).toThrow('not connected');
    await expect(connection.exclusive(async () => 1)).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
    await connection.start();
    await connection.stop();

    expect(() => connection.commands).toThrow('not connected');
    await expect(connection.blocking()).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
  });

  test('keeps none of our clients after the stop', async () => {
    const connection = await connected(here(), { name: 'leaver' });
    await connection.blocking();
    await Promise.all([1, 2, 3].map(() => connection.exclusive((client) => client.ping())));
    expect((await clientsNamed('leaver')).length).toBeGreaterThanOrEqual(4);

    await connection.stop();

    await until('all clients are gone', async () => (await clientsNamed('leaver')).length === 0);
  });

  test('a started connection can be stopped and started again', async () => {
    const connection = await connected(here());
    await connection.stop();
    await connection.start();

    expect(await connection.commands.ping()).toBe('PONG');
  });

  describe('crashes', () => {
    test('and a command under way ends as unknown, and runs at most once', async () => {
      const connection = await connected(here());
      const outcomes: string[] = [];
      for (let round = 0; round < 3; round++) {
        const running = Array.from({ length: 200 }, () => outcome(connection.commands.incr('count')));
        // The server has the commands in its hands, or not yet: both happen.
        const crashed = server.crash();
        outcomes.push(...(await Promise.all(running)));
        await crashed;
        await server.start();
        await connection.whenReady(AbortSignal.timeout(20_000));
      }
      const count = Number((await connection.commands.get('count')) ?? 0);
      const told = (what: string) => outcomes.filter((one) => one === what).length;

      expect(new Set(outcomes)).toContain('REDIS_REPLY_UNKNOWN');
      expect(
        [...new Set(outcomes)].filter((one) => !['done', 'REDIS_REPLY_UNKNOWN', 'REDIS_UNAVAILABLE'].includes(one)),
      ).toEqual([]);
      expect(count).toBeGreaterThanOrEqual(told('done'));
      expect(count).toBeLessThanOrEqual(told('done') + told('REDIS_REPLY_UNKNOWN'));
    });

    test.each([
      ['a transaction', (redis: RedisClient) => redis.multi().incr('count').incr('count').exec()],
      ['a script', (redis: RedisClient) => redis.eval("return redis.call('INCR', KEYS[1])", 1, 'count')],
      ['a blocking pop', (redis: RedisClient) => redis.blpop('empty', 0)],
    ])('and %s under way ends as unknown', async (_, send) => {
      const connection = await connected(here(), { commandTimeoutMs: 60_000 });
      server.hang();
      const told = outcome(send(connection.commands));
      await server.crash();

      expect(await told).toBe('REDIS_REPLY_UNKNOWN');
      await server.start();
      await connection.whenReady(AbortSignal.timeout(20_000));
      expect(Number((await connection.commands.get('count')) ?? 0)).toBeLessThanOrEqual(2);
    });

    test('and while it is down a command fails at once and has certainly not run', async () => {
      const connection = await connected(here());
      await server.crash();
      await until('the break is noticed', () => connection.commands.status !== 'ready');
      const outcomes = await Promise.all(Array.from({ length: 50 }, () => outcome(connection.commands.incr('count'))));
      await server.start();
      await connection.whenReady(AbortSignal.timeout(20_000));

      expect(new Set(outcomes)).toEqual(new Set(['REDIS_UNAVAILABLE']));
      expect(await connection.commands.get('count')).toBeNull();
    });

    test('and whoever waits for it is told when it is back, however many attempts were in vain', async () => {
      const connection = await connected(here());
      await server.crash();
      await until('the break is noticed', () => connection.commands.status !== 'ready');
      let attempts = 0;
      connection.commands.on('error', () => attempts++);
      const back = connection.whenReady(AbortSignal.timeout(20_000));
      await until('attempts fail', () => attempts >= 2);
      await server.start();

      await expect(back).resolves.toBeUndefined();
      expect(await connection.commands.ping()).toBe('PONG');
    });

    test('and waiting for it ends with the signal', async () => {
      const connection = await connected(here());
      await server.crash();
      await until('the break is noticed', () => connection.commands.status !== 'ready');
      const over = new AbortController();
      const waiting = failureOf(connection.whenReady(over.signal));
      over.abort(new Error('enough'));

      expect(await waiting).toMatchObject({ message: 'enough' });
      await server.start();
    });

    test('and a subscriber hears again what is published after it is back', async () => {
      const connection = await connected(here());
      const heard: string[] = [];
      await connection.subscriber.subscribe('news');
      connection.subscriber.on('message', (_, text) => heard.push(text));
      await server.crash();
      await server.start();
      await connection.whenReady(AbortSignal.timeout(20_000));

      await until(
        'the subscription is taken up',
        async () => (await connection.commands.publish('news', 'again')) === 1,
      );
      await until('the message arrives', () => heard.length > 0);
      expect(heard).toContain('again');
    });
  });

  test('that hangs makes a command end as unknown after its time, and goes on with it later', async () => {
    const connection = await connected(here(), { commandTimeoutMs: 100 });
    server.hang();
    const told = await outcome(connection.commands.incr('count'));
    await until('the connection is given up', () => connection.commands.status !== 'ready');
    server.goOn();

    expect(told).toBe('REDIS_REPLY_UNKNOWN');
    // It might as well have vanished: the next command goes over a new connection.
    await connection.whenReady(AbortSignal.timeout(20_000));
    expect(await connection.commands.ping()).toBe('PONG');
    await until('the command ran after all', async () => (await observer.get('count')) === '1');
  });

  describe('a blocking client', () => {
    test('waits longer than a command may take', async () => {
      const connection = await connected(here(), { commandTimeoutMs: 50 });
      const client = await connection.blocking();
      const popped = client.blpop('later', 0);
      await until('it waits well past the time of a command', async () => {
        const [line = ''] = await clientsNamed('reeve-test').then((all) =>
          all.filter((one) => one.includes('cmd=blpop')),
        );
        return Number(/ idle=(\d+)/.exec(line)?.[1]) >= 1;
      });
      await observer.rpush('later', 'now');

      expect(await popped).toEqual(['later', 'now']);
      hangUp(client);
    });

    test('is not waited for any longer when its signal is aborted', async () => {
      const connection = await connected(here(), { connectTimeoutMs: 3_600_000 });
      await server.crash();
      const over = new AbortController();
      const taking = failureOf(connection.blocking(over.signal));
      over.abort();

      expect(await taking).toMatchObject({ code: 'REDIS_UNAVAILABLE' });
      await server.start();
    });
  });

  describe('an exclusive client', () => {
    test('lets concurrent borrowers increment by hand without losing one', async () => {
      const connection = await connected(here());
      const increment = (client: RedisClient) =>
        untilTruthy(async () => {
          await client.watch('sum');
          const sum = Number((await client.get('sum')) ?? 0);
          return client
            .multi()
            .set('sum', sum + 1)
            .exec();
        });
      await Promise.all(Array.from({ length: 40 }, () => connection.exclusive(increment)));

      expect(await connection.commands.get('sum')).toBe('40');
    });

    test('never carries a watch to the next borrower', async () => {
      const connection = await connected(here());
      await connection.exclusive((client) => client.watch('seen'));
      const done = await connection.exclusive(async (client) => {
        await observer.set('seen', 'changed');
        return client.multi().set('mine', '1').exec();
      });

      expect(done).toEqual([[null, 'OK']]);
    });

    test('never carries an open transaction to the next borrower', async () => {
      const connection = await connected(here());
      await connection.exclusive(async (client) => {
        await client.multi({ pipeline: false });
        await client.set('half', '1');
      });

      expect(await connection.exclusive((client) => client.set('whole', '1'))).toBe('OK');
      expect(await observer.exists('half')).toBe(0);
    });

    test('is not lent again after a work that failed', async () => {
      const connection = await connected(here());
      let first: RedisClient | undefined;
      await expect(
        connection.exclusive(async (client) => {
          first = client;
          throw new Error('broken off');
        }),
      ).rejects.toThrow('broken off');

      expect(await connection.exclusive(async (client) => client === first)).toBe(false);
    });

    test('is lent again after one that succeeded, so that borrowing costs no connection', async () => {
      const connection = await connected(here());
      const first = await connection.exclusive(async (client) => client);

      expect(await connection.exclusive(async (client) => client === first)).toBe(true);
    });

    test('whose connection broke after WATCH cannot EXEC as if nothing had happened', async () => {
      const connection = await connected(here(), { name: 'watcher' });
      const told = await connection.exclusive(async (client) => {
        await client.watch('guarded');
        const [line = ''] = (await clientsNamed('watcher')).filter((one) => one.includes('exclusive'));
        await observer.client('KILL', 'ID', Number(/^id=(\d+)/.exec(line)?.[1]));
        await until('the break is noticed', () => client.status !== 'ready');
        await observer.set('guarded', 'by another');
        await until('it is clear whether it comes back', () => client.status === 'end' || client.status === 'ready');
        return outcome(client.multi().set('guarded', 'by me').exec());
      });

      expect(told).toBe('REDIS_REPLY_UNKNOWN');
      expect(await observer.get('guarded')).toBe('by another');
    });

    test('that broke after the work was done does not turn the result into a failure', async () => {
      const connection = await connected(here(), { name: 'finisher' });
      const result = await connection.exclusive(async (client) => {
        await client.multi().set('done', '1').exec();
        client.disconnect();
        return 'committed';
      });

      expect(result).toBe('committed');
    });
  });
});

describe('over TLS', () => {
  let server: RedisProcess;
  let files: Record<'ca' | 'cert' | 'key', string>;
  let tlsPort: number;
  beforeAll(async () => {
    tlsPort = await freePort();
    const folder = await aFolderOfCertificates();
    files = { ca: join(folder, 'ca.crt'), cert: join(folder, 'server.crt'), key: join(folder, 'server.key') };
    server = await runRedis({
      port: 0,
      'tls-port': tlsPort,
      'tls-cert-file': files.cert,
      'tls-key-file': files.key,
      'tls-ca-cert-file': files.ca,
      'tls-auth-clients': 'optional',
    });
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const target = (tls: Partial<Parameters<typeof redisTarget>[0]['tls']>) =>
    redisTarget({ ...given, url: `rediss://localhost:${tlsPort}`, tls: { verify: true, ...tls } });

  test('a server is trusted whose certificate the given authority signed', async () => {
    const connection = await connected(target({ caFile: files.ca }));

    expect(await connection.commands.ping()).toBe('PONG');
  });

  test('a client shows its own certificate if it has one', async () => {
    const connection = await connected(target({ caFile: files.ca, certFile: files.cert, keyFile: files.key }));

    expect(await connection.commands.ping()).toBe('PONG');
  });

  test('a server nobody vouches for is not trusted, unless told not to verify', async () => {
    const connection = aConnection(target({}), { connectTimeoutMs: 300 });
    await expect(connection.start()).rejects.toMatchObject({
      code: 'REDIS_UNAVAILABLE',
      message: expect.stringMatching(/certificate/),
    });

    const careless = await connected(target({ verify: false }));
    expect(await careless.commands.ping()).toBe('PONG');
  });

  test('the certificate must be of the expected name', async () => {
    const other = aConnection(target({ caFile: files.ca, serverName: 'elsewhere.example' }), { connectTimeoutMs: 300 });

    await expect(other.start()).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
  });
});

describe('behind Sentinels', () => {
  test('the master is found, and the next one after a failover', async () => {
    await using sentinels = await startSentinels();
    const { url, name } = sentinels;
    const connection = await connected(redisTarget({ ...given, mode: 'sentinel', sentinelName: name, url }));
    onTestFinished(() => connection.stop());
    await connection.commands.set('kept', 'yes');
    await connection.commands.wait(1, 5_000);

    await sentinels.master.crash();

    const wrote = () => connection.commands.set('after', 'failover').catch(() => false);
    await until('the new master takes writes', wrote, 25_000);
    expect(await connection.commands.get('kept')).toBe('yes');
    expect(await connection.commands.config('GET', 'port')).toContain(String(sentinels.replica.port));
  }, 60_000);
});

describe('a cluster', () => {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  test('takes commands for keys of every node', async () => {
    const connection = await connected(cluster.target);
    const keys = Array.from({ length: 30 }, (_, at) => `key-${at}`);
    await Promise.all(keys.map((key) => connection.commands.set(key, key)));

    expect(connection.mode).toBe('cluster');
    expect(await Promise.all(keys.map((key) => connection.commands.get(key)))).toEqual(keys);
    expect(new Set(await Promise.all(keys.map((key) => cluster.nodeOf(key)))).size).toBe(3);
  });

  test('whose node crashes never runs a command twice', async () => {
    const connection = await connected(cluster.target);
    const node = await cluster.nodeOf('count');
    const outcomes: string[] = [];
    for (let round = 0; round < 3; round++) {
      const running = Array.from({ length: 200 }, () => outcome(connection.commands.incr('count')));
      const crashed = node.crash();
      outcomes.push(...(await Promise.all(running)));
      await crashed;
      await node.start();
      await untilServed(connection, 'count');
    }
    const count = Number(await connection.commands.get('count'));
    const told = (what: string) => outcomes.filter((one) => one === what).length;

    expect(
      [...new Set(outcomes)].filter((one) => !['done', 'REDIS_REPLY_UNKNOWN', 'REDIS_UNAVAILABLE'].includes(one)),
    ).toEqual([]);
    expect(told('REDIS_REPLY_UNKNOWN')).toBeGreaterThan(0);
    expect(count).toBeGreaterThanOrEqual(told('done'));
    expect(count).toBeLessThanOrEqual(told('done') + told('REDIS_REPLY_UNKNOWN'));
  });

  test('lends clients whose watches are their own', async () => {
    const connection = await connected(cluster.target);
    const key = '{estate}sum';
    await connection.exclusive((client) => client.watch(key));
    const increment = (client: RedisClient) =>
      untilTruthy(async () => {
        await client.watch(key);
        const sum = Number((await client.get(key)) ?? 0);
        return client
          .multi()
          .set(key, sum + 1)
          .exec();
      });
    await Promise.all(Array.from({ length: 10 }, () => connection.exclusive(increment)));

    expect(await connection.commands.get(key)).toBe('10');
  });

  test('that refuses the password says so at once', async () => {
    const url = `redis://:wrong@${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
    const [first] = cluster.nodes;
    for (const { port } of cluster.nodes) await configured(port, 'requirepass', 'right');
    onTestFinished(async () => {
      for (const { port } of cluster.nodes) await configured(port, 'requirepass', '', 'right');
    });
    expect(first).toBeDefined();
    const connection = aConnection(redisTarget({ ...given, mode: 'cluster', url }), { connectTimeoutMs: 3_600_000 });

    await expect(connection.start()).rejects.toMatchObject({ code: 'REDIS_REFUSED' });
  });
});

async function configured(port: number, name: string, value: string, password?: string): Promise<void> {
  const client = new Redis({ port, ...(password && { password }) });
  await client.config('SET', name, value);
  client.disconnect();
}

const untilServed = (connection: Connection, key: string) =>
  until(
    'the slot is served again',
    () =>
      connection.commands.exists(key).then(
        () => true,
        () => false,
      ),
    20_000,
  );

/** Tries again until the attempt answers, as one does with WATCH. */
async function untilTruthy<T>(attempt: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const answer = await attempt();
    if (answer) return answer;
    await systemClock.sleep(1);
  }
}

/** An authority of our own, and what it signed for localhost. */
async function aFolderOfCertificates(): Promise<string> {
  const { mkdtemp, writeFile, rm } = await import('node:fs/promises');
  const { tmpdir } = await import('node:os');
  const folder = await mkdtemp(join(tmpdir(), 'reeve-tls-'));
  onAfterAll.push(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'san.ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...fresh, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=test authority');
  openssl('req', ...fresh, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  openssl(
    'x509',
    '-req',
    '-in',
    'server.csr',
    '-CA',
    'ca.crt',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-days',
    '2',
    '-extfile',
    'san.ext',
    '-out',
    'server.crt',
  );
  return folder;
}
const onAfterAll: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const step of onAfterAll) await step();
});
