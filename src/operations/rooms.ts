import type { Analytics } from '../analytics/analytics.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { DelegationStore } from '../approvals/delegation-store.ts';
import type { PolicyStore } from '../approvals/policy-store.ts';
import type { Archivist } from '../archive/archivist.ts';
import type { TaskArchive } from '../archive/task-archive.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Roster } from '../coordinator/agents/roster.ts';
import type { DeadlockDetector } from '../coordinator/locks/deadlock-detector.ts';
import type { LockDesk } from '../coordinator/locks/lock-desk.ts';
import type { Locks } from '../coordinator/locks/locks.ts';
import type { TaskBoard } from '../coordinator/tasks/board.ts';
import type { TaskDesk } from '../coordinator/tasks/desk.ts';
import type { Tasks } from '../coordinator/tasks/tasks.ts';
import type { Deliveries } from '../deliveries/deliveries.ts';
import type { ReeveError } from '../errors.ts';
import type { EventLog } from '../events/event-log.ts';
import type { Tail } from '../events/tail.ts';
import type { Executions } from '../executions/executions.ts';
import type { Doorkeeper } from '../identity/doorkeeper.ts';
import type { Sessions } from '../identity/sessions.ts';
import type { Tokens } from '../identity/tokens.ts';
import type { Users } from '../identity/users.ts';
import type { Journal } from '../journal/journal.ts';
import type { Step } from '../migration/ade-v1.ts';
import type { Notifications } from '../notices/notifications.ts';
import type { EndpointLimits } from '../ratelimit/endpoint-limits.ts';
import type { Library } from '../registry/library.ts';
import type { ManifestWrite } from '../registry/manifest-edit.ts';
import type { Sync } from '../sync/sync.ts';
import type { LiveSettings } from '../system/live-settings.ts';
import type { System } from '../system/system.ts';
import type { Webhooks } from '../webhooks/webhooks.ts';
import type { Why } from '../why/why.ts';

/** Writes one file as a commit of a source and syncs it. Refuses with ASSET_CHANGED if `base` is no longer at the path. */
export interface WriteBack {
  write(
    source: string,
    write: ManifestWrite,
    as: { readonly message: string; readonly by: string },
  ): Promise<{ readonly commit: string }>;
}

/** The rooms an operation may ask, as daemon.ts built them. */
export interface Rooms {
  readonly system: System;
  readonly events: EventLog;
  readonly tail: Tail;
  /** What can be changed while the daemon runs. */
  readonly live: LiveSettings;
  readonly why: Why;
  readonly locks: Locks;
  readonly lockDesk: LockDesk;
  readonly deadlocks: DeadlockDetector;
  readonly tasks: Tasks;
  readonly taskDesk: TaskDesk;
  /** Tasks that ended, also those that Redis has forgotten. */
  readonly archive: TaskArchive;
  readonly archivist: Archivist;
  /** What attempts wrote, and what undoes them. */
  readonly executions: Executions;
  readonly roster: Roster;
  /** How the work as a whole gets on. */
  readonly board: TaskBoard;
  readonly approvals: Approvals;
  readonly policies: PolicyStore;
  readonly delegations: DelegationStore;
  readonly clock: Clock;
  /** Who calls, and who may. */
  readonly doorkeeper: Doorkeeper;
  readonly users: Users;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly audit: Audit;
  /** Who is told of events. */
  readonly webhooks: Webhooks;
  readonly notifications: Notifications;
  readonly deliveries: Deliveries;
  readonly analytics: Analytics;
  /** What waits for Redis to come back. */
  readonly journal: Journal;
  /** How often one may ask. */
  readonly limits: EndpointLimits;
  /** Brings data of the first version into the form of this one; without `apply`, says what it would do. */
  readonly migrateAdeV1: (apply: boolean) => Promise<readonly Step[]>;
  /** All assets of all sources. */
  readonly library: Library;
  readonly sync: Sync;
  readonly writeBack: WriteBack;
  /** Gives errors of the media (Redis, SQL) their code; undefined if it is none of theirs. */
  readonly explain: (error: unknown) => ReeveError | undefined;
}
