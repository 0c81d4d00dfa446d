import { Analytics } from './analytics/analytics.ts';
import { Pipeline } from './analytics/pipeline.ts';
import { storePeople } from './approvals/store-people.ts';
import type { Clock } from './clock.ts';
import type { Tasks } from './coordinator/tasks/tasks.ts';
import { Deliveries } from './deliveries/deliveries.ts';
import type { Lane } from './deliveries/delivery.ts';
import { Sender } from './deliveries/sender.ts';
import type { EventName, Payload, ReeveEvent } from './events/catalogue.ts';
import type { EventLog } from './events/event-log.ts';
import type { GroupName } from './events/group.ts';
import { groupWork } from './events/group-work.ts';
import type { Tail } from './events/tail.ts';
import type { Logger } from './log.ts';
import type { TaskFacts } from './notices/notice.ts';
import { Notifications } from './notices/notifications.ts';
import type { Service } from './service.ts';
import type { Config } from './settings.ts';
import type { Store } from './store/database.ts';
import { Webhooks } from './webhooks/webhooks.ts';

export interface EventRoomsOptions {
  /** Asked on each use: a reload replaces it. */
  readonly config: () => Config;
  readonly store: Store;
  readonly tasks: Tasks;
  readonly events: EventLog;
  readonly tail: Pick<Tail, 'listen'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Which daemon it is. */
  readonly service: string;
  /** Names this daemon among the consumers of a group: one name for each of its lives. */
  readonly worker: string;
  /** For events that are no part of a change: that one cannot be written is no reason to fail. */
  readonly tell: <E extends EventName>(event: E, payload: Payload<E>) => Promise<void>;
}

export interface EventRooms {
  readonly rooms: {
    readonly webhooks: Webhooks;
    readonly notifications: Notifications;
    readonly deliveries: Deliveries;
    readonly analytics: Analytics;
  };
  readonly sender: Sender;
  readonly members: readonly Service[];
}

/** Those who read the events: who tells people, who tells other programs, who counts. */
export function createEventRooms(options: EventRoomsOptions): EventRooms {
  const { config, store, tasks, clock, log, service, worker, tell } = options;
  const { connection } = tasks.store;
  const onWaiting = () => sender.wake();
  const webhooks = new Webhooks({
    store,
    clock,
    log,
    service,
    onWaiting,
    tell,
    limits: () => {
      const { disableAfterHours, allowPrivate } = config().webhooks;
      return { disableAfterMs: disableAfterHours * 3_600_000, allowsPrivate: allowPrivate };
    },
  });
  const people = storePeople({ store, groups: () => config().approvals.groups });
  const notifications = new Notifications({
    store,
    clock,
    routes: () => config().notifications.routes,
    taskFacts: (task) => taskFacts(tasks, task),
    roles: async () => {
      const roles = new Map((await people.all()).map((person) => [person.id, person.roles]));
      return (user) => roles.get(user) ?? [];
    },
    onWaiting,
  });
  const sender = new Sender({
    store,
    clock,
    log,
    worker,
    limits: () => {
      const { attempts, timeoutSeconds, retrySeconds, keepDays } = config().webhooks;
      return { attempts, timeoutMs: timeoutSeconds * 1000, retryMs: retrySeconds * 1000, keepDays };
    },
    destinationOf: async (lane) => {
      const { kind, name } = partsOf(lane);
      return kind === 'webhook' ? webhooks.destination(name) : notifications.destination(name);
    },
    onAnswer: async (lane, answer) => {
      const { kind, name } = partsOf(lane);
      if (kind === 'webhook') await webhooks.answered(name, answer);
    },
  });
  const pipeline = new Pipeline({
    store,
    clock,
    lifecycleId: (task) => tasks.store.adeId(task),
    statesOf: (ids) => connection.commands.mget(ids.map((id) => tasks.store.keys.taskState(id))),
  });
  const consumer = (group: GroupName, handle: (events: readonly ReeveEvent[]) => Promise<void>) =>
    groupWork({ ...options, connection, group, handle });
  return {
    rooms: {
      webhooks,
      notifications,
      deliveries: new Deliveries({ store, clock, onWaiting }),
      analytics: new Analytics({ store, clock }),
    },
    sender,
    members: [
      sender.service(),
      consumer('notification-service', (events) => notifications.notify(events)),
      consumer('webhook-dispatcher', (events) => webhooks.dispatch(events)),
      consumer('analytics-pipeline', (events) => pipeline.count(events)),
    ],
  };
}

const partsOf = (lane: Lane): { readonly kind: string; readonly name: string } => {
  const colon = lane.indexOf(':');
  return { kind: lane.slice(0, colon), name: lane.slice(colon + 1) };
};

async function taskFacts({ store: { connection, keys } }: Tasks, task: string): Promise<TaskFacts> {
  const [data, author] = await Promise.all([
    connection.commands.get(keys.taskData(task)),
    connection.commands.hget(keys.taskMetadata(task), 'author_id'),
  ]);
  const { title } = data === null ? {} : (JSON.parse(data) as { title?: string });
  return { title, author: author ?? undefined };
}
