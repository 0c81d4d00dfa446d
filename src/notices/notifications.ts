import { randomUUID } from 'node:crypto';
import { type Clock, isoTime } from '../clock.ts';
import { enqueue, type Lane, type Parcel } from '../deliveries/delivery.ts';
import type { Destination } from '../deliveries/sender.ts';
import { ReeveError } from '../errors.ts';
import type { ReeveEvent } from '../events/catalogue.ts';
import type { NotificationRoute } from '../notification-route.ts';
import type { DeepReadonly } from '../reviewer-policy.ts';
import type { Store } from '../store/database.ts';
import { type Audience, isNoticed, type Notice, noticeOf, type TaskFacts } from './notice.ts';
import { type RolesOf, routesFor } from './routing.ts';

export type Route = DeepReadonly<NotificationRoute>;

export interface NotificationsOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Those of the configuration; asked each time, for a reload replaces them. */
  readonly routes: () => readonly Route[];
  readonly taskFacts: (task: string) => Promise<TaskFacts>;
  /** Everybody's roles, as they are now. */
  readonly roles: () => Promise<RolesOf>;
  /** There is something to send. */
  readonly onWaiting: () => void;
}

/** Tells people what concerns them, by the routes of the configuration. */
export class Notifications {
  readonly #options: NotificationsOptions;

  constructor(options: NotificationsOptions) {
    this.#options = options;
  }

  /** The notification-service: what whom is told of these events. */
  async notify(events: readonly ReeveEvent[]): Promise<void> {
    const { store, clock, routes, roles } = this.#options;
    const noticed = events.filter(({ event }) => isNoticed(event));
    if (noticed.length === 0 || routes().length === 0) return;
    const rolesOf = await roles();
    const parcels: Parcel[] = [];
    for (const event of noticed) {
      const { task_id: task } = event.payload;
      const notice = noticeOf(event, typeof task === 'string' ? await this.#options.taskFacts(task) : {});
      if (notice)
        parcels.push(...routesFor(routes(), event.event, notice, rolesOf).map((route) => parcel(route, event, notice)));
    }
    if (parcels.length === 0) return;
    await store.db.transaction().execute((tx) => enqueue(tx, clock, parcels));
    this.#options.onWaiting();
  }

  /** Sends a message that means nothing by a route, and returns its id. */
  async test(name: string): Promise<string> {
    const { store, clock } = this.#options;
    const route = this.#find(name);
    if (!route) throw new ReeveError('ROUTE_UNKNOWN', { route: name });
    const event: ReeveEvent = {
      stream: 'system',
      id: `test-${randomUUID()}`,
      event: 'notification:test',
      at: isoTime(clock),
      source: 'reeve',
      payload: { route: name },
    };
    const notice = { to: [], text: 'A test: notifications of reeve arrive here.' };
    const ids = await store.db.transaction().execute((tx) => enqueue(tx, clock, [parcel(route, event, notice)]));
    this.#options.onWaiting();
    return ids[0] as string;
  }

  /** The routes as the configuration has them, without where they lead: an address may be all it takes to write there. */
  list() {
    return this.#options.routes().map(({ name, slack, url, secret, users, roles, onCall, events }) => ({
      name,
      kind: slack === undefined ? ('webhook' as const) : ('slack' as const),
      host: new URL(slack ?? url ?? '').host,
      signed: secret !== undefined,
      users,
      roles,
      on_call: onCall,
      events,
    }));
  }

  /** The operator wrote the address into the configuration: it may be anywhere. */
  destination(name: string): Destination | 'gone' {
    const route = this.#find(name);
    if (!route) return 'gone';
    return { url: (route.slack ?? route.url) as string, secret: route.secret, allowsPrivate: true };
  }

  #find(name: string): Route | undefined {
    return this.#options.routes().find((route) => route.name === name);
  }
}

const parcel = (route: Route, event: ReeveEvent, notice: Notice): Parcel => ({
  lane: `route:${route.name}` satisfies Lane,
  eventKey: `${event.stream}/${event.id}`,
  event: event.event,
  body: JSON.stringify(route.slack === undefined ? message(event, notice) : { text: slackText(notice) }),
});

const message = ({ event, at, stream, id, payload }: ReeveEvent, { to, text, next }: Notice) => ({
  type: event,
  timestamp: at,
  stream,
  event_id: id,
  to: to.map(nameOf),
  text,
  ...(next && { next }),
  data: payload,
});

const nameOf = (audience: Audience): string => {
  if ('user' in audience) return audience.user;
  return 'role' in audience ? `role:${audience.role}` : `on-call:${audience.onCall}`;
};

/** Slack reads <, > and & as its own. Whoever it is for is named, for a route may serve many. */
function slackText({ to, text, next }: Notice): string {
  const escaped = (part: string) => part.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const names = to.map(nameOf).join(', ');
  return [
    names === '' ? escaped(text) : `*${escaped(names)}*: ${escaped(text)}`,
    ...(next ? [`\`${escaped(next)}\``] : []),
  ].join('\n');
}
