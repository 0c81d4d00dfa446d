import { join } from 'node:path';
import { sourceDependencies } from './asset-dependency.ts';
import { createAssetRooms } from './asset-rooms.ts';
import { type Clock, systemClock } from './clock.ts';
import { type Loaded, maskedConfig } from './config.ts';
import { Roster } from './coordinator/agents/roster.ts';
import { LockChannels } from './coordinator/locks/channels.ts';
import { lockCleanup } from './coordinator/locks/cleanup-job.ts';
import { countLocks } from './coordinator/locks/count-locks.ts';
import { DeadlockDetector } from './coordinator/locks/deadlock-detector.ts';
import { explainLocks } from './coordinator/locks/explain-locks.ts';
import { LockDesk } from './coordinator/locks/lock-desk.ts';
import { Locks } from './coordinator/locks/locks.ts';
import { createPrdBridge } from './coordinator/prd/bridge.ts';
import { choosePrdFile, makeSample } from './coordinator/prd/prd-file.ts';
import { TaskDesk } from './coordinator/tasks/desk.ts';
import { explainTasks } from './coordinator/tasks/explain-tasks.ts';
import { Reconciler } from './coordinator/tasks/reconcile.ts';
import { Tasks } from './coordinator/tasks/tasks.ts';
import { type DataDirHold, holdDataDir } from './data-dir.ts';
import { checklist } from './diagnosis.ts';
import { ReeveError, reason } from './errors.ts';
import { archiver } from './events/archiver.ts';
import type { EventName, Payload } from './events/catalogue.ts';
import { EventLog } from './events/event-log.ts';
import { createTail } from './events/tail.ts';
import { httpServer } from './http/server.ts';
import { Jobs, jobRunner } from './jobs/jobs.ts';
import type { Logger } from './log.ts';
import { mcpDoor } from './mcp/server.ts';
import { createMetrics } from './metrics/metrics.ts';
import { operations } from './operations/index.ts';
import { invoke } from './operations/operation.ts';
import type { Rooms } from './operations/rooms.ts';
import { takeTurn } from './ratelimit/rate-limit.ts';
import { addressText, connectionOptions } from './redis/address.ts';
import { connectRedis } from './redis/connection.ts';
import { redisFailure } from './redis/failure.ts';
import { findRedisServer } from './redis/find-server.ts';
import { type KeyspaceOptions, keyspace } from './redis/keys.ts';
import { createScripts, type Scripts } from './redis/script.ts';
import { redisServer } from './redis/server.ts';
import { type RedisTarget, redisTarget } from './redis/target.ts';
import { group, type Service, service } from './service.ts';
import { createStore } from './store/database.ts';
import { MOST_DELIVERY_BYTES } from './sync/webhook.ts';
import type { Dependency } from './system/dependency.ts';
import { diagnose } from './system/doctor.ts';
import { LiveSettings } from './system/live-settings.ts';
import type { LiveValues } from './system/live-table.ts';
import { Readiness } from './system/readiness.ts';
import { System } from './system/system.ts';
import { systemd } from './systemd.ts';
import { Why } from './why/why.ts';

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
const SWEEP_SECONDS = 1;
const DETECT_SECONDS = 2;

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
  const keys = keyspace(spelling);
  const events = new EventLog({ connection, keys, scripts });
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

  const live = new LiveSettings({
    connection,
    keys,
    scripts,
    events,
    clock,
    log: log.child('settings'),
    fromFile: liveFromFile(loaded()),
  });
  const lockLog = log.child('locks');
  const locks = new Locks({
    connection,
    keyspace: spelling,
    scripts,
    events,
    limits: async () => ({
      leaseMs: (await live.get('lock:default_ttl')) * 1000,
      maxLeaseMs: (await live.get('lock:max_ttl')) * 1000,
      depth: config.locks.queueDepth,
    }),
    admit: async (agent) => {
      const { acquirePerMinute: perMinute, acquireBurst: burst } = config.locks;
      const verdict = await takeTurn(scripts, keys.lockRateLimit(agent), { perMinute, burst });
      return verdict.outcome === 'limited' ? verdict.retryAfterMs : 0;
    },
  });
  const channels = new LockChannels(connection);
  const lockDesk = new LockDesk({ locks, channels, events, clock, log: lockLog });
  const deadlocks = new DeadlockDetector({
    locks,
    clock,
    log: lockLog,
    isEnabled: () => live.isEnabled('deadlock_detection'),
    confirmMs: async () => (await live.get('lock:heartbeat_interval')) * 1000,
  });
  const jobs = new Jobs({
    connection,
    keys,
    scripts,
    clock,
    log: log.child('jobs'),
    handlers: {
      lock_cleanup: { everySeconds: () => SWEEP_SECONDS, limitMs: 60_000, run: lockCleanup({ locks, log: lockLog }) },
      deadlock_detect: { everySeconds: () => DETECT_SECONDS, limitMs: 30_000, run: () => deadlocks.detectOnce() },
    },
  });

  const taskLimits = () => {
    const { listed, priorityOrder, maxAttempts, retrySeconds, rawGraceSeconds, rawLeaseSeconds } =
      loaded().config.tasks;
    return {
      window: listed,
      priorityOrder,
      maxAttempts,
      retryMs: retrySeconds * 1000,
      rawGraceMs: rawGraceSeconds * 1000,
      rawLeaseMs: rawLeaseSeconds * 1000,
    };
  };
  const taskLog = log.child('tasks');
  // The claim is one script over keys of many slots. Refused as a whole, rather than broken in the middle.
  const isCluster = spelling.mode === 'cluster';
  const taskScripts: Scripts = isCluster
    ? { run: () => Promise.reject(new ReeveError('TASKS_NEED_ONE_SERVER')) }
    : scripts;
  const tasks = new Tasks({
    connection,
    keyspace: spelling,
    scripts: taskScripts,
    locks,
    clock,
    log: taskLog,
    limits: taskLimits,
    defaultTimeout: () => live.get('task:default_timeout'),
  });
  const taskDesk = new TaskDesk({ connection, store: tasks.store, work: tasks.work, clock });
  const reconciler = new Reconciler({
    tasks,
    locks,
    keyspace: spelling,
    events,
    clock,
    log: taskLog,
    limits: taskLimits,
  });
  const roster = new Roster({ connection, keys, places: locks, clock });

  const prd = choosePrdFile(config.prd.path, cwd, dataDir);
  const bridge = createPrdBridge({ path: prd.path, sink: tasks, clock, log: log.child('prd') });
  const prdFile = service('tasks', async () => {
    if (await makeSample(prd)) log.info('sample tasks made', { path: prd.path });
    return undefined;
  });

  const isDirNamed = loaded().sources['assets.dir'] !== 'default';
  const assets = createAssetRooms({
    config,
    isDirNamed,
    connection,
    mode: spelling.mode,
    clock,
    log: log.child('sync'),
    fetch,
    env,
    holder: instance,
    events,
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
      check: async () => {
        if (isCluster) throw new ReeveError('TASKS_NEED_ONE_SERVER');
        return bridge.check();
      },
    },
    ...sourceDependencies(assets.sync, !isDirNamed),
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
          path,
          prd,
          isDirNamed,
          listening: httpDoor.url,
          redis: { client: connection.commands, address: connection.address, embedded: isEmbedded, clock },
          store,
        }),
        explain,
      ),
  });
  const why = new Why([explainTasks(tasks), explainLocks(locks)]);
  const { sync, library, writeBack } = assets;
  const rooms: Rooms = {
    system,
    events,
    tail,
    live,
    why,
    locks,
    lockDesk,
    deadlocks,
    tasks,
    taskDesk,
    roster,
    sync,
    library,
    writeBack,
    clock,
    explain,
  };

  const metrics = createMetrics({
    version,
    dependencies: () => readiness.ask(),
    redisRestarts: () => server.restarts(),
    locksHeld: () => countLocks(locks),
    sources: () => sync.status(),
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
    webhook: { handle: assets.webhook, mostBytes: MOST_DELIVERY_BYTES },
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
      ...(isCluster ? [] : [taskDesk.listening(), bridge, reconciler.service()]),
      jobRunner(jobs, { clock, log: log.child('jobs') }),
      archiver({ events, store, clock, log: log.child('events') }),
      mcpLife,
      httpDoor,
      assets.life,
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

/** What was written into the file (or given by flag or environment); a default is none of it. */
function liveFromFile({ config, sources }: Loaded): Partial<LiveValues> {
  const { defaultTtlSeconds, maxTtlSeconds, heartbeatSeconds } = config.locks;
  const given = (name: string) => sources[`locks.${name}`] !== 'default';
  return {
    ...(given('defaultTtlSeconds') && { 'lock:default_ttl': defaultTtlSeconds }),
    ...(given('maxTtlSeconds') && { 'lock:max_ttl': maxTtlSeconds }),
    ...(given('heartbeatSeconds') && { 'lock:heartbeat_interval': heartbeatSeconds }),
  };
}
