import { randomUUID } from 'node:crypto';
import { asking, createApprovalRooms, picturing } from './approval-rooms.ts';
import { explainApprovals } from './approvals/explain-approvals.ts';
import { archiveJob } from './archive/archive-job.ts';
import { Archivist } from './archive/archivist.ts';
import { Renewal } from './archive/renewal.ts';
import { TaskArchive } from './archive/task-archive.ts';
import { sourceDependencies } from './asset-dependency.ts';
import { createAssetRooms } from './asset-rooms.ts';
import { Audit } from './audit/audit.ts';
import { auditDrain } from './audit/drain.ts';
import { auditLogger } from './audit/gap-check.ts';
import { type Clock, systemClock } from './clock.ts';
import { type Loaded, maskedConfig } from './config.ts';
import { countLocks } from './coordinator/locks/count-locks.ts';
import { explainLocks } from './coordinator/locks/explain-locks.ts';
import { choosePrdFile } from './coordinator/prd/prd-file.ts';
import { explainTasks } from './coordinator/tasks/explain-tasks.ts';
import { type DataDirHold, holdDataDir } from './data-dir.ts';
import { checklist } from './diagnosis.ts';
import { ReeveError, reason } from './errors.ts';
import { createEventRooms } from './event-rooms.ts';
import { archiver } from './events/archiver.ts';
import { streamHealth } from './events/behind.ts';
import type { EventName, Payload } from './events/catalogue.ts';
import { EventLog } from './events/event-log.ts';
import { createTail } from './events/tail.ts';
import { trimmer } from './events/trimmer.ts';
import { createExecutionRooms, fileBodyBytes } from './execution-rooms.ts';
import { httpServer } from './http/server.ts';
import { createIdentityRooms } from './identity-rooms.ts';
import { Jobs, jobRunner } from './jobs/jobs.ts';
import { Journal } from './journal/journal.ts';
import { replayLock } from './journal/replay-lock.ts';
import { createLockRooms } from './lock-rooms.ts';
import type { Logger } from './log.ts';
import { mcpDoor } from './mcp/door.ts';
import { createMetrics } from './metrics/metrics.ts';
import { migrateAdeV1 } from './migration/ade-v1.ts';
import { operations } from './operations/index.ts';
import { invoke } from './operations/operation.ts';
import { replaying } from './operations/replay.ts';
import type { Rooms } from './operations/rooms.ts';
import { EndpointLimits } from './ratelimit/endpoint-limits.ts';
import { redisFailure } from './redis/failure.ts';
import { type KeyspaceOptions, keyspace } from './redis/keys.ts';
import { createScripts } from './redis/script.ts';
import { createRedisMedium, EMBEDDED_CONNECT_MS } from './redis-medium.ts';
import { explainAssets } from './registry/explain-assets.ts';
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
import { createTaskRooms } from './task-rooms.ts';
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

/** The composition root: builds everything, in order, once. The order of the list at its end is the order of starting. */
export function createDaemon({ loaded, log, clock = systemClock, version, cwd, env, onFatal }: DaemonOptions): Daemon {
  const { config } = loaded();
  const { dataDir, project, instance, http: door } = config;
  const path = env.PATH ?? '';

  let hold: DataDirHold | undefined;
  const dataDirHold = service('data directory', async () => {
    const taken = await holdDataDir({ dir: dataDir, clock, log: log.child('data directory'), describe: { version } });
    hold = taken;
    return () => taken.release();
  });

  const { connection, isEmbedded, server, members } = createRedisMedium({
    config,
    env,
    clock,
    log: log.child('redis'),
    onRestart: ({ restarts, how }) => void tell('redis:restarted', { restarts, why: how }),
    onFatal,
  });
  const store = createStore({ url: config.store.url, dataDir, clock, log: log.child('store') });

  const spelling: KeyspaceOptions = { mode: config.redis.mode === 'cluster' ? 'cluster' : 'standalone', project };
  const context = () => ({ shift_us: 0, keep: config.events.most, source: instance });
  const scripts = createScripts({ connection, keyspace: spelling, context });
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
  const keyRoom = createLockRooms({
    config: config.locks,
    connection,
    spelling,
    scripts,
    events,
    live,
    clock,
    log: log.child('locks'),
  });
  const { locks, lockDesk, deadlocks } = keyRoom;

  const prd = choosePrdFile(config.prd.path, cwd, dataDir);
  const work = createTaskRooms({
    config: () => loaded().config.tasks,
    prd,
    connection,
    spelling,
    scripts,
    context,
    version,
    locks,
    events,
    tail,
    defaultTimeout: () => live.get('task:default_timeout'),
    clock,
    log,
  });
  const { tasks, taskDesk, roster, staffing, board } = work;
  const gate = createApprovalRooms({
    config: () => loaded().config.approvals,
    store,
    tasks,
    locks,
    live,
    clock,
    log: log.child('approvals'),
    service: instance,
  });

  const archive = new TaskArchive({ store, project: tasks.store.project });
  const afterDays = () => loaded().config.tasks.archiveAfterDays;
  const archivist = new Archivist({ tasks: tasks.store, archive, clock, afterDays });
  const renewal = new Renewal({ tasks: tasks.store, clock });
  const keepDays = () => loaded().config.tasks.archiveKeepDays;
  const pruning = { store, project: tasks.store.project, clock, service: instance, keepDays };
  const archiving = archiveJob({ tasks: tasks.store, archivist, renewal, pruning, log: log.child('archive') });

  // In Cluster mode tasks, and with them approvals, are not served.
  const timed = spelling.mode === 'cluster' ? {} : { ...gate.handlers, archive: archiving };
  const jobs = new Jobs({
    connection,
    keys,
    scripts,
    clock,
    log: log.child('jobs'),
    handlers: { ...keyRoom.handlers, ...work.handlers, ...timed },
  });

  const { executions, files, sweeping } = createExecutionRooms({
    config: () => loaded().config,
    store: tasks.store,
    clock,
    log: log.child('files'),
    fetch,
  });
  const identity = createIdentityRooms({
    store,
    connection,
    keys,
    scripts,
    clock,
    log: log.child('identity'),
    service: instance,
    ...(spelling.mode === 'cluster' ? {} : { rights: gate.rights }),
  });

  const journal = new Journal({ store, clock, most: () => loaded().config.journal.most });
  const streams = { connection, events, store, ...config.events };
  const audit = new Audit({ connection, keys, store });
  const worker = randomUUID();
  const readers = createEventRooms({
    config: () => loaded().config,
    store,
    tasks,
    events,
    tail,
    clock,
    log: log.child('events'),
    service: instance,
    worker,
    tell,
  });
  const auditing = { connection, keys, store, events, clock, log: log.child('audit'), worker };

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
      name: 'events',
      required: false,
      // They lie in Redis, which says for itself whether it is.
      embedded: false,
      address: () => connection.address,
      check: () => streamHealth(streams),
    },
    {
      name: 'journal',
      required: false,
      // It lies in the store, as the events lie in Redis.
      embedded: false,
      address: () => store.describe(),
      check: () => journal.counts(),
    },
    work.dependency,
    ...sourceDependencies(assets.sync, !isDirNamed && config.assets.sources.length === 0),
  ];
  const readiness = new Readiness({ dependencies, clock, explain });
  const system = new System({
    version,
    instance,
    project,
    dataDir,
    clock,
    readiness,
    needsTokens: () => identity.doorkeeper.needsTokens(),
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
          files,
          redis: { client: connection.commands, address: connection.address, embedded: isEmbedded, clock },
          store,
        }),
        explain,
      ),
  });
  const { sync, library, writeBack } = assets;
  const why = new Why([
    explainApprovals(gate.approvals, tasks),
    explainTasks(tasks, staffing),
    explainLocks(locks),
    explainAssets(library),
  ]);
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
    archive,
    archivist,
    executions,
    roster,
    board,
    ...gate,
    sync,
    library,
    writeBack,
    ...identity,
    audit,
    ...readers.rooms,
    journal,
    migrateAdeV1: (apply) => migrateAdeV1({ connection, keys, scripts, locks, clock }, apply),
    limits: new EndpointLimits({ scripts, keys, limits: () => endpointLimits(loaded().config.limits) }),
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
    fileBodyBytes: fileBodyBytes(config),
    requestMs: Math.round(door.requestSeconds * 1000),
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
  const waking = service('alarm clock', async () =>
    tail.listen((event) => {
      keyRoom.wake(event, jobs);
      work.wake(event, jobs);
      if (spelling.mode !== 'cluster') gate.wake(event, jobs);
    }),
  );
  const mcpLife = service('mcp', async () => {
    const stopListening = tail.listen((event) => mcp.told(event));
    return async () => {
      stopListening();
      await mcp.close();
    };
  });
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
      ...members,
      store,
      tail,
      counting,
      ...work.members,
      waking,
      ...(spelling.mode === 'cluster'
        ? []
        : [picturing(gate.approvals), asking(gate.approvals, { clock, log: log.child('approvals') })]),
      jobRunner(jobs, { clock, log: log.child('jobs') }),
      auditDrain(auditing),
      auditLogger({ ...auditing, tail }),
      sweeping,
      ...readers.members,
      replaying({ rooms, operations, lock: replayLock(connection, keys, worker), log: log.child('journal') }),
      archiver({ events, tail, store, clock, log: log.child('events') }),
      trimmer({ ...streams, tail, clock, log: log.child('events') }),
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

function endpointLimits(config: Loaded['config']['limits']) {
  const { createPerMinute, createBurst, respondPerMinute, respondBurst, everyone } = config;
  const limit = (perMinute: number, burst: number) => ({
    each: { perMinute, burst },
    all: { perMinute: perMinute * everyone, burst: burst * everyone },
  });
  return {
    'tasks:create': limit(createPerMinute, createBurst),
    'approvals:respond': limit(respondPerMinute, respondBurst),
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
