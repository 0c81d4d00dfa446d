import { join } from 'node:path';
import type { Redis, RedisOptions } from 'ioredis';
import { onTestFinished } from 'vitest';
import { createApprovalRooms } from '../../src/approval-rooms.ts';
import { explainApprovals } from '../../src/approvals/explain-approvals.ts';
import { Archivist } from '../../src/archive/archivist.ts';
import { TaskArchive } from '../../src/archive/task-archive.ts';
import { type AssetRooms, createAssetRooms } from '../../src/asset-rooms.ts';
import { Audit } from '../../src/audit/audit.ts';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config.ts';
import { Roster } from '../../src/coordinator/agents/roster.ts';
import { LockChannels } from '../../src/coordinator/locks/channels.ts';
import { DeadlockDetector } from '../../src/coordinator/locks/deadlock-detector.ts';
import { explainLocks } from '../../src/coordinator/locks/explain-locks.ts';
import { LockDesk } from '../../src/coordinator/locks/lock-desk.ts';
import { Locks } from '../../src/coordinator/locks/locks.ts';
import { TaskBoard } from '../../src/coordinator/tasks/board.ts';
import { TaskDesk } from '../../src/coordinator/tasks/desk.ts';
import { explainTasks } from '../../src/coordinator/tasks/explain-tasks.ts';
import { Staffing } from '../../src/coordinator/tasks/staffing.ts';
import { Tasks } from '../../src/coordinator/tasks/tasks.ts';
import { ReeveError } from '../../src/errors.ts';
import { createEventRooms } from '../../src/event-rooms.ts';
import { EventLog } from '../../src/events/event-log.ts';
import { createTail } from '../../src/events/tail.ts';
import { createExecutionRooms } from '../../src/execution-rooms.ts';
import { createIdentityRooms } from '../../src/identity-rooms.ts';
import { Journal } from '../../src/journal/journal.ts';
import { silentLog } from '../../src/log.ts';
import { migrateAdeV1 } from '../../src/migration/ade-v1.ts';
import type { Rooms } from '../../src/operations/rooms.ts';
import { EndpointLimits, type EndpointLimitsOptions } from '../../src/ratelimit/endpoint-limits.ts';
import { type Connection, type ConnectionOptions, connectRedis } from '../../src/redis/connection.ts';
import { redisFailure } from '../../src/redis/failure.ts';
import { type Keyspace, type KeyspaceOptions, keyspace } from '../../src/redis/keys.ts';
import { createScripts, type ScriptContext, type Scripts } from '../../src/redis/script.ts';
import type { RedisTarget } from '../../src/redis/target.ts';
import type { Store } from '../../src/store/database.ts';
import type { Dependency } from '../../src/system/dependency.ts';
import type { Finding } from '../../src/system/doctor.ts';
import { LiveSettings } from '../../src/system/live-settings.ts';
import { Readiness } from '../../src/system/readiness.ts';
import { System } from '../../src/system/system.ts';
import { Why } from '../../src/why/why.ts';
import { aDirectory, aStore } from '../store/builders.ts';
import { undeclaredKeys } from './undeclared-keys.ts';

/** How reeve is told of a server that a test runs. */
export const targetOf = (options: RedisOptions): RedisTarget => ({
  kind: 'standalone',
  address: options.path ? `unix:${options.path}` : `127.0.0.1:${options.port}`,
  options: { ...(options.port && { host: '127.0.0.1' }), ...options },
});

/** Not started yet; stopped when the test ends. */
export function aConnection(target: RedisTarget, more: Partial<ConnectionOptions> = {}): Connection {
  const connection = connectRedis({
    target: () => target,
    clock: systemClock,
    log: silentLog,
    commandTimeoutMs: 5_000,
    connectTimeoutMs: 5_000,
    name: 'reeve-test',
    ...more,
  });
  onTestFinished(() => connection.stop());
  return connection;
}

export async function connected(target: RedisTarget, more: Partial<ConnectionOptions> = {}): Promise<Connection> {
  const connection = aConnection(target, more);
  await connection.start();
  return connection;
}

export interface EventRoom {
  readonly connection: Connection;
  readonly keys: Keyspace;
  readonly scripts: Scripts;
  readonly events: EventLog;
  /** Moves the time that scripts see. */
  shiftUs(by: number): void;
}

/** A connection, scripts and the event log on it. */
export async function anEventRoom(
  target: RedisTarget,
  { context = {}, space = { mode: 'standalone' }, ...more }: EventRoomOptions = {},
): Promise<EventRoom> {
  const connection = await connected(target, more);
  let shift_us = 0;
  const scripts = createScripts({
    connection,
    keyspace: space,
    context: () => ({ shift_us, keep: 10_000, source: 'test', ...context }),
  });
  const keys = keyspace(space);
  const events = new EventLog({ connection, keys, scripts });
  return {
    connection,
    keys,
    scripts,
    events,
    shiftUs: (by) => {
      shift_us += by;
    },
  };
}

interface EventRoomOptions extends Partial<ConnectionOptions> {
  readonly context?: Partial<ScriptContext>;
  readonly space?: KeyspaceOptions;
}

export interface TestRooms extends Rooms {
  readonly webhook: AssetRooms['webhook'];
  readonly readiness: Readiness;
  readonly connection: Connection;
  readonly store: Store;
}

/** All rooms that operations may ask, on a real Redis. */
export async function theRooms(target: RedisTarget, more: RoomsOptions = {}): Promise<TestRooms> {
  const { connection, keys, scripts, events } = await anEventRoom(target, more);
  const tail = createTail({ connection, events, clock: systemClock, log: silentLog });
  await tail.start();
  onTestFinished(() => tail.stop());
  const explain = (error: unknown) => (error instanceof ReeveError ? error : redisFailure(error, connection.address));
  const redis: Dependency = {
    name: 'redis',
    required: true,
    embedded: false,
    address: () => connection.address,
    check: async () => {
      await connection.commands.ping();
      return { version: connection.server.version };
    },
  };
  const dependencies = [redis, ...(more.dependencies ?? [])];
  const readiness = new Readiness({ dependencies, clock: systemClock, explain });
  const system = new System({
    version: '0.0.0-test',
    instance: 'test',
    project: 'odyssey',
    dataDir: '/nonexistent',
    clock: systemClock,
    readiness,
    needsTokens: () => identity.doorkeeper.needsTokens(),
    address: () => 'http://127.0.0.1:0',
    config: () => ({ settings: { log: { level: 'info' } }, sources: { 'log.level': 'default' } }),
    diagnose: async () => more.findings ?? [{ check: 'node', result: 'ok', says: 'it runs' }],
  });
  const [clock, log] = [systemClock, silentLog];
  const live = new LiveSettings({ connection, keys, scripts, events, clock, log });
  const locks = new Locks({
    connection,
    keyspace: more.space ?? { mode: 'standalone' },
    scripts,
    events,
    limits: () => ({ leaseMs: 30_000, maxLeaseMs: 900_000, depth: 100 }),
  });
  const lockDesk = new LockDesk({ locks, channels: new LockChannels(connection), events, clock, log });
  const isEnabled = () => live.isEnabled('deadlock_detection');
  const deadlocks = new DeadlockDetector({ locks, clock, log, isEnabled, confirmMs: async () => 10_000 });
  const keyspaceOptions = more.space ?? ({ mode: 'standalone' } as const);
  const tasks = new Tasks({
    connection,
    keyspace: keyspaceOptions,
    scripts,
    locks,
    clock: systemClock,
    log: silentLog,
    limits: () => TASK_LIMITS,
    defaultTimeout: async () => 0,
  });
  const taskDesk = new TaskDesk({ connection, store: tasks.store, work: tasks.work, clock: systemClock });
  const roster = new Roster({ connection, keys, places: locks, clock: systemClock });
  const dataDir = await aDirectory();
  const { executions } = createExecutionRooms({
    config: () => ({ ...loadConfig({ env: {}, cwd: dataDir }).config, dataDir }),
    store: tasks.store,
    clock,
    log,
    fetch,
  });
  const { views, pauses } = tasks;
  const staffing = new Staffing({ roster, views, waiting: () => taskDesk.waiting(), clock });
  const board = new TaskBoard({ views, pauses, roster, staffing, events, tail, clock });
  const store = await aStore({ url: `sqlite:${join(await aDirectory(), 'test.db')}` });
  const approvalConfig = () => ({ policies: [], groups: {} });
  const gate = createApprovalRooms({ config: approvalConfig, store, tasks, locks, live, clock, log, service: 'test' });
  const why = new Why([explainApprovals(gate.approvals, tasks), explainTasks(tasks, staffing), explainLocks(locks)]);
  const { config } = loadConfig({ env: {}, cwd: '/nonexistent' });
  const { sync, library, writeBack, webhook, ...assetRooms } = createAssetRooms({
    config,
    isDirNamed: false,
    connection,
    mode: more.space?.mode ?? 'standalone',
    clock,
    log,
    fetch,
    env: {},
    holder: 'test',
    events,
  });
  onTestFinished(() => assetRooms.close());
  const assets = { sync, library, writeBack, webhook };
  const noLimit = { each: { perMinute: 0, burst: 1 }, all: { perMinute: 0, burst: 1 } };
  const limits = new EndpointLimits({
    scripts,
    keys,
    limits: () => more.limits ?? { 'tasks:create': noLimit, 'approvals:respond': noLimit },
  });
  const migrate = (apply: boolean) => migrateAdeV1({ connection, keys, scripts, locks, clock }, apply);
  const audit = new Audit({ connection, keys, store });
  const { rights } = gate;
  const identity = createIdentityRooms({ store, connection, keys, scripts, clock, log, service: 'test', rights });
  await rights.draw();
  const readers = createEventRooms({
    config: () => config,
    store,
    tasks,
    events,
    tail,
    clock,
    log,
    service: 'test',
    worker: 'test',
    tell: async (event, payload) => void (await events.append(event, payload)),
  });
  const archive = new TaskArchive({ store, project: tasks.store.project });
  const work = {
    journal: new Journal({ store, clock, most: () => config.journal.most }),
    ...readers.rooms,
    ...gate,
    live,
    why,
    locks,
    lockDesk,
    deadlocks,
    tasks,
    taskDesk,
    archive,
    archivist: new Archivist({ tasks: tasks.store, archive, clock, afterDays: () => config.tasks.archiveAfterDays }),
    executions,
    roster,
    board,
  };
  return {
    system,
    events,
    tail,
    ...work,
    ...assets,
    ...identity,
    migrateAdeV1: migrate,
    audit,
    limits,
    clock,
    explain,
    readiness,
    connection,
    store,
  };
}

interface RoomsOptions extends EventRoomOptions {
  readonly dependencies?: readonly Dependency[];
  readonly findings?: readonly Finding[];
  readonly limits?: ReturnType<EndpointLimitsOptions['limits']>;
}

/** For afterEach: fails if a test left a key that the table does not know. */
export async function noStrayKeys(redis: Redis): Promise<void> {
  const stray = await undeclaredKeys(redis);
  if (stray.length > 0) throw new Error(stray.join('\n'));
}

const TASK_LIMITS = {
  window: 1_000,
  priorityOrder: 'asc',
  maxAttempts: 3,
  retryMs: 1_000,
  rawGraceMs: 30_000,
  rawLeaseMs: 600_000,
} as const;
