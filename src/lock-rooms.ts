import type { Clock } from './clock.ts';
import { LockChannels } from './coordinator/locks/channels.ts';
import { lockCleanup } from './coordinator/locks/cleanup-job.ts';
import { DeadlockDetector } from './coordinator/locks/deadlock-detector.ts';
import { LockDesk } from './coordinator/locks/lock-desk.ts';
import { Locks } from './coordinator/locks/locks.ts';
import type { ReeveEvent } from './events/catalogue.ts';
import type { EventLog } from './events/event-log.ts';
import type { Handlers, Jobs } from './jobs/jobs.ts';
import type { Logger } from './log.ts';
import { takeTurn } from './ratelimit/rate-limit.ts';
import type { Connection } from './redis/connection.ts';
import { type KeyspaceOptions, keyspace } from './redis/keys.ts';
import type { Scripts } from './redis/script.ts';
import type { Config } from './settings.ts';
import type { LiveSettings } from './system/live-settings.ts';

export interface LockRoomsOptions {
  readonly config: Config['locks'];
  readonly connection: Connection;
  readonly spelling: KeyspaceOptions;
  readonly scripts: Scripts;
  readonly events: EventLog;
  readonly live: LiveSettings;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface LockRooms {
  readonly locks: Locks;
  readonly lockDesk: LockDesk;
  readonly deadlocks: DeadlockDetector;
  readonly handlers: Handlers;
  /** Brings the periodic work forward when an event says that there is some. */
  readonly wake: (event: ReeveEvent, jobs: Jobs) => void;
}

const SWEEP_SECONDS = 1;
/** A sweep is short. A daemon killed in the middle of one keeps its successor from sweeping for no longer than this. */
const SWEEP_LIMIT_MS = 10_000;
const DETECT_SECONDS = 2;
/** While nothing can end and nobody waits. Whoever takes or awaits a lock is heard of, and then it is sooner. */
const REST_SECONDS = 10;

/** The locks, those who wait for them, and the work that keeps them clean. */
export function createLockRooms(options: LockRoomsOptions): LockRooms {
  const { config, connection, spelling, scripts, events, live, clock, log } = options;
  const keys = keyspace(spelling);
  const { acquirePerMinute: perMinute, acquireBurst: burst, queueDepth: depth } = config;
  const locks = new Locks({
    connection,
    keyspace: spelling,
    scripts,
    events,
    limits: async () => ({
      leaseMs: (await live.get('lock:default_ttl')) * 1000,
      maxLeaseMs: (await live.get('lock:max_ttl')) * 1000,
      depth,
    }),
    admit: async (agent) => {
      const verdict = await takeTurn(scripts, keys.lockRateLimit(agent), { perMinute, burst });
      return verdict.outcome === 'limited' ? verdict.retryAfterMs : 0;
    },
    copies: { replicas: config.replicas, withinMs: config.replicasWithinMs },
  });
  const lockDesk = new LockDesk({ locks, channels: new LockChannels(connection), events, clock, log });
  const deadlocks = new DeadlockDetector({
    locks,
    clock,
    log,
    isEnabled: () => live.isEnabled('deadlock_detection'),
    confirmMs: async () => (await live.get('lock:heartbeat_interval')) * 1000,
  });
  const sweepSeconds = async () => {
    const lists = await Promise.all([locks.nextDue('registry'), locks.nextDue('waiting')]);
    const next = Math.min(REST_SECONDS, ...lists.map((seconds) => seconds ?? REST_SECONDS));
    return Math.max(SWEEP_SECONDS, next);
  };
  const detectSeconds = async () => ((await locks.nextDue('waiting')) === undefined ? REST_SECONDS : DETECT_SECONDS);
  const handlers = {
    lock_cleanup: { everySeconds: sweepSeconds, limitMs: SWEEP_LIMIT_MS, run: lockCleanup({ locks, log }) },
    deadlock_detect: { everySeconds: detectSeconds, limitMs: 30_000, run: () => deadlocks.detectOnce() },
  };
  const wake = ({ event }: ReeveEvent, jobs: Jobs) => {
    if (event !== 'lock:acquired' && event !== 'lock:queued') return;
    jobs.hurry('lock_cleanup', { inSeconds: SWEEP_SECONDS });
    if (event === 'lock:queued') jobs.hurry('deadlock_detect', { inSeconds: DETECT_SECONDS });
  };
  return { locks, lockDesk, deadlocks, handlers, wake };
}
