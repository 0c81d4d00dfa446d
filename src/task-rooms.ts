import type { Clock } from './clock.ts';
import { Roster } from './coordinator/agents/roster.ts';
import type { Locks } from './coordinator/locks/locks.ts';
import { createPrdBridge } from './coordinator/prd/bridge.ts';
import { makeSample, type PrdFile } from './coordinator/prd/prd-file.ts';
import { TaskBoard } from './coordinator/tasks/board.ts';
import { TaskDesk } from './coordinator/tasks/desk.ts';
import { TaskFunctions } from './coordinator/tasks/functions.ts';
import { TaskMirror } from './coordinator/tasks/mirror.ts';
import { Reconciler } from './coordinator/tasks/reconcile.ts';
import { reindexing } from './coordinator/tasks/reindex.ts';
import { Staffing } from './coordinator/tasks/staffing.ts';
import { Tasks } from './coordinator/tasks/tasks.ts';
import { LOOK_SECONDS, timeoutJob } from './coordinator/tasks/timeout-job.ts';
import { ReeveError } from './errors.ts';
import type { ReeveEvent } from './events/catalogue.ts';
import type { EventLog } from './events/event-log.ts';
import type { Tail } from './events/tail.ts';
import type { Handlers, Jobs } from './jobs/jobs.ts';
import type { Logger } from './log.ts';
import type { Connection } from './redis/connection.ts';
import { type KeyspaceOptions, keyspace } from './redis/keys.ts';
import type { ScriptSurroundings, Scripts } from './redis/script.ts';
import { type Service, service } from './service.ts';
import type { Config } from './settings.ts';
import type { Dependency } from './system/dependency.ts';

export interface TaskRoomsOptions {
  /** Asked on each use: a reload replaces it. */
  readonly config: () => Config['tasks'];
  readonly prd: PrdFile;
  readonly connection: Connection;
  readonly spelling: KeyspaceOptions;
  readonly scripts: Scripts;
  /** As those scripts have it. */
  readonly context: () => ScriptSurroundings;
  readonly version: string;
  readonly locks: Locks;
  readonly events: EventLog;
  readonly tail: Tail;
  readonly defaultTimeout: () => Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface TaskRooms {
  readonly tasks: Tasks;
  readonly taskDesk: TaskDesk;
  readonly roster: Roster;
  readonly staffing: Staffing;
  readonly board: TaskBoard;
  /** The task file, as something the daemon depends on. */
  readonly dependency: Dependency;
  readonly handlers: Handlers;
  /** Brings the periodic work forward when an event says that there is some. */
  readonly wake: (event: ReeveEvent, jobs: Jobs) => void;
  readonly members: readonly Service[];
}

/** The tasks, who works on them, and the file they come from. */
export function createTaskRooms(options: TaskRoomsOptions): TaskRooms {
  const { config, prd, connection, spelling, locks, events, defaultTimeout, clock, context, version, tail } = options;
  const log = options.log.child('tasks');
  const limits = () => {
    const { listed, exclusive, priorityOrder, maxAttempts, retrySeconds, rawGraceSeconds, rawLeaseSeconds, unwritten } =
      config();
    return {
      window: listed,
      isExclusive: exclusive,
      priorityOrder,
      maxAttempts,
      retryMs: retrySeconds * 1000,
      rawGraceMs: rawGraceSeconds * 1000,
      rawLeaseMs: rawLeaseSeconds * 1000,
      unwritten,
    };
  };
  // The claim is one script over keys of many slots. Refused as a whole, rather than broken in the middle.
  const isCluster = spelling.mode === 'cluster';
  const scripts: Scripts = isCluster
    ? { run: () => Promise.reject(new ReeveError('TASKS_NEED_ONE_SERVER')) }
    : options.scripts;
  const tasks = new Tasks({ connection, keyspace: spelling, scripts, locks, clock, log, limits, defaultTimeout });
  const taskDesk = new TaskDesk({ connection, store: tasks.store, work: tasks.work, clock });
  const reconciler = new Reconciler({ tasks, locks, keyspace: spelling, events, clock, log, limits });
  const { store } = tasks;
  const functions = new TaskFunctions({ store, locks, keyspace: spelling, limits, context, version, clock, log });
  const roster = new Roster({
    connection,
    keys: keyspace(spelling),
    places: locks,
    clock,
    current: () => store.current(),
  });
  const { views, pauses } = tasks;
  const staffing = new Staffing({ roster, views, waiting: () => taskDesk.waiting(), clock });
  const board = new TaskBoard({ views, pauses, roster, staffing, events, tail, clock });
  const bridge = createPrdBridge({ path: prd.path, sink: tasks, clock, log: options.log.child('prd') });
  const sample = service('tasks', async () => {
    if (await makeSample(prd)) options.log.info('sample tasks made', { path: prd.path });
    return undefined;
  });
  const dependency: Dependency = {
    name: 'tasks',
    required: false,
    embedded: prd.sample,
    address: () => prd.path,
    check: async () => {
      if (isCluster) throw new ReeveError('TASKS_NEED_ONE_SERVER');
      return bridge.check();
    },
  };
  const mirror = new TaskMirror({ store, tail, clock, log });
  const loops = [
    reindexing({ store, keyspace: spelling, log }),
    tasks.ledger.service(),
    taskDesk.listening(),
    board.listening(),
    bridge,
    reconciler.service(),
    functions.service(),
    mirror.service(),
  ];
  const members = [sample, ...(isCluster ? [] : loops)];
  const handlers: Handlers = isCluster ? {} : { task_timeout: timeoutJob({ tasks, reconciler, log }) };
  const wake = ({ event }: ReeveEvent, jobs: Jobs) => {
    if (event === 'task_assigned' && !isCluster) jobs.hurry('task_timeout', { inSeconds: LOOK_SECONDS });
  };
  return { tasks, taskDesk, roster, staffing, board, dependency, handlers, wake, members };
}
