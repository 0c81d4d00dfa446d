import { systemClock } from '../../clock.ts';
import { loadConfig } from '../../config.ts';
import type { Flags } from '../../config-layers.ts';
import { choosePrdFile } from '../../coordinator/prd/prd-file.ts';
import { readDaemonFile } from '../../daemon-file.ts';
import { checklist, type Probes, unreachable } from '../../diagnosis.ts';
import { asReeveError, type ReeveError, reason } from '../../errors.ts';
import { filesOf } from '../../execution-rooms.ts';
import { silentLog } from '../../log.ts';
import { type Connection, connectRedis } from '../../redis/connection.ts';
import { redisFailure } from '../../redis/failure.ts';
import { lookForRedisServer } from '../../redis/find-server.ts';
import { redisTarget } from '../../redis/target.ts';
import { createStore, type Store } from '../../store/database.ts';
import { type Check, diagnose, type Finding, isHealthy, ok, skipped } from '../../system/doctor.ts';
import { Client } from '../client.ts';
import type { CommandModule, Surroundings } from '../main.ts';
import type { Output } from '../output.ts';
import { line, pad } from '../render.ts';
import { readTokenFile } from '../token-file.ts';

const CONNECT_MS = 3_000;

/** A running daemon is asked, for it sees what it uses; where none runs, the same questions are put from here. */
export const run: CommandModule['run'] = async ({ flags }, output, surroundings) => {
  const token = typeof flags.token === 'string' ? flags.token : surroundings.env.REEVE_TOKEN;
  const url = typeof flags.url === 'string' ? flags.url : surroundings.env.REEVE_URL;
  const findings = url ? await asked(new Client(url, token)) : await here(flags, surroundings, token);
  const healthy = isHealthy(findings);
  if (output.form === 'json') output.json({ healthy, findings });
  else show(output, findings);
  return healthy ? 0 : 1;
};

async function asked(client: Client): Promise<readonly Finding[]> {
  const { answer } = await client.ask({ method: 'GET', path: '/doctor', input: {} });
  return (answer as { findings: Finding[] }).findings;
}

async function here(flags: Flags, { env, cwd }: Surroundings, token?: string): Promise<readonly Finding[]> {
  let config: Probes['config'];
  let sources: Readonly<Record<string, string>>;
  try {
    ({ config, sources } = loadConfig({ flags, env, cwd }));
  } catch (error) {
    const { message, next } = asReeveError(error);
    return [{ check: 'configuration', result: 'fail', says: message, fix: next }];
  }
  const running = await readDaemonFile(config.dataDir);
  if (running?.address.startsWith('http')) {
    return [
      { check: 'daemon', result: 'ok', says: `process ${running.pid} at ${running.address}, since ${running.since}` },
      ...(await asked(new Client(running.address, token ?? readTokenFile(config.dataDir)))),
    ];
  }
  const redis = await probeRedis(config, env);
  const store = await probeStore(config);
  try {
    const prd = choosePrdFile(config.prd.path, cwd, config.dataDir);
    const probes: Probes = {
      config,
      clock: systemClock,
      fetch,
      path: env.PATH ?? '',
      prd,
      isDirNamed: sources['assets.dir'] !== 'default',
      redis: redis.probe,
      store: store.probe,
      // A folder is made by the daemon that needs it; a service can be asked from anywhere.
      files: config.files.s3.bucket ? filesOf(config, systemClock, fetch) : undefined,
    };
    const checks = checklist(probes).filter(({ name }) => !(name === 'tasks' && prd.sample));
    const findings = await diagnose(checks, (error) => redisFailure(error, redis.connection?.address ?? ''));
    return [
      { check: 'daemon', result: 'warn', says: `none runs on ${config.dataDir}`, fix: 'reeve daemon' },
      ...findings,
    ];
  } finally {
    await redis.connection?.stop();
    await store.open?.stop();
  }
}

type Env = Surroundings['env'];

async function probeRedis(
  config: Probes['config'],
  env: Env,
): Promise<{ probe: Probes['redis']; connection?: Connection }> {
  const { url, server: setting, commandTimeoutMs } = config.redis;
  const { dataDir, cacheDir } = config;
  if (!url) return { probe: programCheck({ setting, dataDir, cacheDir, path: env.PATH ?? '', env }) };
  try {
    const target = redisTarget({ ...config.redis, url });
    const connection = connectRedis({
      target: () => target,
      clock: systemClock,
      log: silentLog,
      commandTimeoutMs,
      connectTimeoutMs: CONNECT_MS,
      name: 'reeve-doctor',
    });
    await connection.start();
    const { commands: client, address } = connection;
    return { connection, probe: { client, address, embedded: false, clock: systemClock } };
  } catch (error) {
    const { message, next }: ReeveError = asReeveError(redisFailure(error, 'redis.url') ?? error);
    return {
      probe: unreachable('redis', message, next.includes('reeve doctor') ? 'Start it, or correct REDIS_URL.' : next),
    };
  }
}

function programCheck(options: Omit<Parameters<typeof lookForRedisServer>[0], 'clock' | 'log'>): Check {
  return {
    name: 'redis',
    run: async () => {
      const found = await lookForRedisServer({ ...options, clock: systemClock, log: silentLog });
      if (!found) return [skipped('no redis-server is here yet; the daemon fetches a private one when it starts')];
      return [
        ok(`${found.flavour} ${found.version} at ${found.program} (${found.origin}); it runs while the daemon does`),
      ];
    },
  };
}

async function probeStore(config: Probes['config']): Promise<{ probe: Probes['store']; open?: Store }> {
  if (!config.store.url) return { probe: { name: 'database', run: async () => [ok(`SQLite in ${config.dataDir}`)] } };
  try {
    const open = createStore({ url: config.store.url, dataDir: config.dataDir, clock: systemClock, log: silentLog });
    await open.start();
    return { probe: open, open };
  } catch (error) {
    return { probe: unreachable('database', reason(error), asReeveError(error).next) };
  }
}

const MARKS = { ok: ['green', '✓'], warn: ['yellow', '!'], fail: ['red', '✗'], skipped: ['dim', '-'] } as const;

function show(output: Output, findings: readonly Finding[]): void {
  if (output.form === 'lines') {
    for (const { result, check, says, fix } of findings) output.print(`${result} ${line({ check, says, fix })}`);
    return;
  }
  const width = Math.max(...findings.map(({ check }) => check.length));
  for (const { result, check, says, fix } of findings) {
    const [colour, mark] = MARKS[result];
    output.print(`${output.style(colour, mark)} ${pad(check, width)}  ${says}`);
    if (fix) output.print(`  ${' '.repeat(width)}  ${output.style('dim', 'fix')} ${fix}`);
  }
}
