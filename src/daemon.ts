import { join } from 'node:path';
import { type Clock, systemClock } from './clock.ts';
import { type Loaded, maskedConfig } from './config.ts';
import { choosePrdFile, inspectPrdFile, makeSample } from './coordinator/prd/prd-file.ts';
import { type DataDirHold, holdDataDir } from './data-dir.ts';
import { checklist } from './diagnosis.ts';
import { ReeveError, reason } from './errors.ts';
import { archiver } from './events/archiver.ts';
import type { EventName, Payload } from './events/catalogue.ts';
import { EventLog } from './events/event-log.ts';
import { createTail } from './events/tail.ts';
import { httpServer } from './http/server.ts';
import type { Logger } from './log.ts';
import { mcpDoor } from './mcp/server.ts';
import { createMetrics } from './metrics/metrics.ts';
import { operations } from './operations/index.ts';
import { invoke } from './operations/operation.ts';
import type { Rooms } from './operations/rooms.ts';
import { addressText, connectionOptions } from './redis/address.ts';
import { connectRedis } from './redis/connection.ts';
import { redisFailure } from './redis/failure.ts';
import { findRedisServer } from './redis/find-server.ts';
import { type KeyspaceOptions, keyspace } from './redis/keys.ts';
import { createScripts } from './redis/script.ts';
import { redisServer } from './redis/server.ts';
import { type RedisTarget, redisTarget } from './redis/target.ts';
import { group, type Service, service } from './service.ts';
import { createStore } from './store/database.ts';
import { countManifests } from './sync/asset-folder.ts';
import type { Dependency } from './system/dependency.ts';
import { diagnose } from './system/doctor.ts';
import { Readiness } from './system/readiness.ts';
import { System } from './system/system.ts';
import { systemd } from './systemd.ts';

export interface DaemonOptions {
  /** Read again on each use: a reload replaces it. */
  readonly loaded: () => Loaded;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly version: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Something broke that no restart of a part can mend: the daemon must end. */
  readonly onFatal: (error: ReeveError) => void;
}

export interface Daemon extends Service {
  readonly url: string;
  readonly dependencies: readonly Dependency[];
  /** Tells the others that the configuration was read again, and what of it must wait. */
  reloaded(what: { readonly changed: readonly string[]; readonly needRestart: readonly string[] }): Promise<void>;
}

const EMBEDDED_CONNECT_MS = 30_000;
const EXTERNAL_CONNECT_MS = 5_000;

/** The composition root: builds everything, in order, once. The order of the list at its end is the order of starting. */
export function createDaemon({ loaded, log, clock = systemClock, version, cwd, env, onFatal }: DaemonOptions): Daemon {
  const { config } = loaded();
  const { dataDir, cacheDir, project, instance, http: door } = config;
  const path = env.PATH ?? '';

  let hold: DataDirHold | undefined;
  const dataDirHold = service('data directory', async () => {
    const taken = await holdDataDir({ dir: dataDir, clock, log: log.child('data directory'), describe: { version } });
    hold = taken;
    return () => taken.release();
  });

  const isEmbedded = config.redis.url === undefined;
  const redisLog = log.child('redis');
  const server = redisServer({
    find: (signal) =>
      findRedisServer({
        setting: config.redis.server,
        dataDir,
        cacheDir,
        path,
        env,
        clock,
        log: redisLog,
        signal,
      }),
    dir: join(dataDir, 'redis'),
    path,
    clock,
    log: redisLog,
    onRestart: ({ restarts, how }) => void tell('redis:restarted', { restarts, why: how }),
    onFatal,
  });
  const target = (): RedisTarget =>
    config.redis.url
      ? redisTarget({ ...config.redis, url: config.redis.url })
      : { kind: 'standalone', address: addressText(server.address()), options: connectionOptions(server.address()) };
  const connection = connectRedis({
    target,
    clock,
    log: redisLog,
    commandTimeoutMs: config.redis.commandTimeoutMs,
    connectTimeoutMs: isEmbedded ? EMBEDDED_CONNECT_MS : EXTERNAL_CONNECT_MS,
    name: 'reeve',
  });
  const store = createStore({ url: config.store.url, dataDir, clock, log: log.child('store') });

  const spelling: KeyspaceOptions = { mode: config.redis.mode === 'cluster' ? 'cluster' : 'standalone', project };
  const scripts = createScripts({
    connection,
    keyspace: spelling,
    context: () => ({ shift_us: 0, keep: config.events.keep, source: instance }),
  });
  const events = new EventLog({ connection, keys: keyspace(spelling), scripts });
  const tail = createTail({ connection, events, clock, log: log.child('events') });
  /** For events about the daemon itself: that one cannot be written is no reason to fail. */
  const tell = async <E extends EventName>(event: E, payload: Payload<E>) => {
    try {
      await connection.whenReady(AbortSignal.timeout(EMBEDDED_CONNECT_MS));
      await events.append(event, payload);
    } catch (error) {
      log.warn('event not written', { event, problem: reason(error) });
    }
  };

  const assets = { dir: config.assets.dir, named: loaded().sources['assets.dir'] !== 'default' };
  const prd = choosePrdFile(config.prd.path, cwd, dataDir);
  const prdFile = service('tasks', async () => {
    if (await makeSample(prd)) log.info('sample tasks made', { path: prd.path });
    return undefined;
  });

  const explain = (error: unknown) => (error instanceof ReeveError ? error : redisFailure(error, connection.address));
  const dependencies: Dependency[] = [
    {
      name: 'redis',
      required: true,
      embedded: isEmbedded,
      address: () => connection.address,
      check: async () => {
        await connection.commands.ping();
        const { flavour, version: redisVersion } = connection.server;
        return {
          flavour,
          version: redisVersion,
          ...(isEmbedded && { pid: server.pid() ?? 0, restarts: server.restarts() }),
        };
      },
    },
    {
      name: 'store',
      required: true,
      embedded: config.store.url === undefined,
      address: () => store.describe(),
      check: async () => {
        await store.check();
        return { dialect: store.dialect };
      },
    },
    {
      name: 'tasks',
      required: false,
      embedded: prd.sample,
      address: () => prd.path,
      check: () => inspectPrdFile(prd.path),
    },
    config.github.repo
      ? githubSource(config.github.repo, config.github.branch)
      : {
          name: 'assets',
          required: false,
          embedded: !assets.named,
          address: () => assets.dir,
          check: async () => ({ manifests: await countManifests(assets.dir, assets) }),
        },
  ];
  const readiness = new Readiness({ dependencies, clock, explain });
  const system = new System({
    version,
    instance,
    project,
    dataDir,
    clock,
    readiness,
    address: () => httpDoor.url,
    config: () => ({ settings: maskedConfig(loaded().config), sources: loaded().sources, file: loaded().file }),
    diagnose: () =>
      diagnose(
        checklist({
          config,
          clock,
          fetch,
          prd,
          assets,
          listening: httpDoor.url,
          redis: { client: connection.commands, address: connection.address, embedded: isEmbedded, clock },
          store,
        }),
        explain,
      ),
  });
  const rooms: Rooms = { system, events, tail, explain };

  const metrics = createMetrics({
    version,
    dependencies: () => readiness.ask(),
    redisRestarts: () => server.restarts(),
  });
  const mcp = mcpDoor({
    operations,
    version,
    log: log.child('mcp'),
    ask: (operation, caller, input, signal) => invoke(operation, { rooms, operations, caller, signal }, input),
  });
  const httpDoor = httpServer({
    ...door,
    drainMs: door.drainSeconds * 1000,
    version,
    operations,
    rooms,
    clock,
    log: log.child('http'),
    onDrain: () => readiness.drain(),
    metrics,
    mounts: { '/mcp': mcp.mount },
  });
  const counting = service('metrics', async () => tail.listen((event) => metrics.count(event)));
  const mcpLife = service('mcp', async () => () => mcp.close());
  const announcement = service('announcement', async () => {
    await hold?.publish(httpDoor.url);
    await events.append('daemon:started', { version, pid: process.pid, address: httpDoor.url });
    return async () => {
      const farewell = events.append('daemon:stopping', { pid: process.pid, why: 'asked to stop' });
      await farewell.catch((error: unknown) => log.warn('event not written', { problem: reason(error) }));
    };
  });
  const init = systemd({ env, status: () => `ready at ${httpDoor.url}`, clock, log });

  const life = group(
    'daemon',
    [
      dataDirHold,
      ...(isEmbedded ? [server] : []),
      connection,
      store,
      prdFile,
      tail,
      counting,
      archiver({ events, store, clock, log: log.child('events') }),
      mcpLife,
      httpDoor,
      announcement,
      init,
    ],
    {
      starting: (member) => log.debug('starting', { member }),
      stopping: (member) => log.debug('stopping', { member }),
      unwindFailed: (error) => log.error('not everything stopped', { problem: reason(error) }),
    },
  );
  return {
    ...life,
    get url() {
      return httpDoor.url;
    },
    dependencies,
    reloaded: async ({ changed, needRestart }) => {
      const told = tell('config:reloaded', { changed: [...changed], need_restart: [...needRestart] });
      await Promise.all([told, init.reloading()]);
    },
  };
}

/** A repository is asked when it is synced and by `reeve doctor`, not on every probe: that would cost quota. */
const githubSource = (repo: string, branch: string | undefined): Dependency => ({
  name: 'assets',
  required: false,
  embedded: false,
  address: () => `github.com/${repo}${branch ? `@${branch}` : ''}`,
  check: async () => ({ repo }),
});
