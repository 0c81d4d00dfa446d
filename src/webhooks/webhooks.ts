import { randomUUID } from 'node:crypto';
import { recordChange } from '../audit/intake.ts';
import { type Clock, isoTime } from '../clock.ts';
import { enqueue, type Lane } from '../deliveries/delivery.ts';
import type { Answer } from '../deliveries/post.ts';
import type { Destination } from '../deliveries/sender.ts';
import { newSecret } from '../deliveries/sign.ts';
import { ReeveError } from '../errors.ts';
import type { EventName, Payload, ReeveEvent } from '../events/catalogue.ts';
import { fits } from '../events/pattern.ts';
import type { Logger } from '../log.ts';
import type { Store } from '../store/database.ts';
import type { WebhookRow } from '../store/schema.ts';
import { messageOf, type Webhook, webhookOf } from './webhook.ts';

export interface WebhooksOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Which daemon it is: goes into audit rows and test messages. */
  readonly service: string;
  readonly limits: () => { readonly disableAfterMs: number; readonly allowsPrivate: boolean };
  /** There is something to send. */
  readonly onWaiting: () => void;
  readonly tell: <E extends EventName>(event: E, payload: Payload<E>) => Promise<void>;
}

export interface NewWebhook {
  readonly target: string;
  readonly events: readonly string[];
  readonly secret?: string | undefined;
  readonly description: string;
}

export type WebhookChange = Partial<NewWebhook> & { readonly active?: boolean | undefined };

/** Who is told of which events, and what becomes of those that cannot be told. */
export class Webhooks {
  readonly #options: WebhooksOptions;

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  async create({ target: url, events, secret = newSecret(), description }: NewWebhook, by: string) {
    const id = `wh_${randomUUID()}`;
    const now = isoTime(this.#options.clock);
    const row: WebhookRow = {
      id,
      url,
      events: JSON.stringify(events),
      secret,
      description,
      active: 1,
      created_at: now,
      created_by: by,
      updated_at: now,
      failing_since: null,
      disabled_because: null,
    };
    await this.#options.store.db.transaction().execute(async (tx) => {
      await tx.insertInto('webhooks').values(row).execute();
      await this.#record(tx, 'webhook.create', id, { host: new URL(url).host, events });
    });
    return { ...webhookOf(row), secret };
  }

  async list(): Promise<Webhook[]> {
    const rows = await this.#options.store.db.selectFrom('webhooks').selectAll().orderBy('created_at').execute();
    return rows.map(webhookOf);
  }

  async get(id: string): Promise<Webhook> {
    return webhookOf(await this.#find(id));
  }

  /** Made active again, it begins with what has been waiting. */
  async update(id: string, { target: url, events, secret, description, active }: WebhookChange): Promise<Webhook> {
    await this.#find(id);
    const set = {
      ...(url !== undefined && { url }),
      ...(events !== undefined && { events: JSON.stringify(events) }),
      ...(secret !== undefined && { secret }),
      ...(description !== undefined && { description }),
      ...(active !== undefined && { active: active ? 1 : 0, failing_since: null, disabled_because: null }),
      updated_at: isoTime(this.#options.clock),
    };
    await this.#options.store.db.transaction().execute(async (tx) => {
      await tx.updateTable('webhooks').set(set).where('id', '=', id).execute();
      await this.#record(tx, 'webhook.update', id, {
        ...(url && { host: new URL(url).host }),
        events,
        active,
        ...(secret && { secret: 'changed' }),
      });
    });
    this.#options.onWaiting();
    return this.get(id);
  }

  /** With everything that was or was to be sent to it. */
  async remove(id: string): Promise<void> {
    await this.#find(id);
    await this.#options.store.db.transaction().execute(async (tx) => {
      await tx.deleteFrom('webhooks').where('id', '=', id).execute();
      await tx.deleteFrom('deliveries').where('lane', '=', laneOf(id)).execute();
      await tx.deleteFrom('delivery_lanes').where('lane', '=', laneOf(id)).execute();
      await this.#record(tx, 'webhook.delete', id, {});
    });
  }

  /** Sends a message that means nothing, the way all others go. */
  async test(id: string): Promise<string> {
    await this.#find(id);
    const { clock, service, store } = this.#options;
    const eventKey = `test/${randomUUID()}`;
    const message = { type: 'webhook:test', timestamp: isoTime(clock), source: service, data: { webhook_id: id } };
    const body = JSON.stringify(message);
    const ids = await store.db
      .transaction()
      .execute((tx) => enqueue(tx, clock, [{ lane: laneOf(id), eventKey, event: 'webhook:test', body }]));
    this.#options.onWaiting();
    return ids[0] as string;
  }

  /** The dispatcher: puts events on their way to whoever wants them. */
  async dispatch(events: readonly ReeveEvent[]): Promise<void> {
    const { store, clock } = this.#options;
    const wanting = (await this.list()).filter(({ active }) => active);
    const parcels = events.flatMap((event) =>
      wanting
        .filter(({ events: patterns }) => fits(patterns, event.event))
        .map(({ webhook_id }) => ({
          lane: laneOf(webhook_id),
          eventKey: `${event.stream}/${event.id}`,
          event: event.event,
          body: messageOf(event),
        })),
    );
    if (parcels.length === 0) return;
    await store.db.transaction().execute((tx) => enqueue(tx, clock, parcels));
    this.#options.onWaiting();
  }

  async destination(id: string): Promise<Destination | 'paused' | 'gone'> {
    const row = await this.#row(id);
    if (!row) return 'gone';
    if (row.active !== 1) return 'paused';
    return { url: row.url, secret: row.secret, allowsPrivate: this.#options.limits().allowsPrivate };
  }

  /** One that fails for too long, or says that it is gone, is told nothing more until somebody has looked after it. */
  async answered(id: string, answer: Answer): Promise<void> {
    const { clock, limits } = this.#options;
    const row = await this.#row(id);
    if (!row) return;
    const set = (change: Partial<WebhookRow>) =>
      this.#options.store.db.updateTable('webhooks').set(change).where('id', '=', id).execute();
    if (answer.outcome === 'accepted') {
      if (row.failing_since !== null) await set({ failing_since: null });
      return;
    }
    if (answer.outcome === 'refused' && answer.status === GONE) return this.#disable(row, 'it answered 410: gone');
    const since = row.failing_since ?? isoTime(clock);
    if (row.failing_since === null) await set({ failing_since: since });
    const hasFailedMs = clock.now() - Date.parse(since);
    if (hasFailedMs >= limits().disableAfterMs) await this.#disable(row, `nothing got through since ${since}`);
  }

  async #disable({ id, url }: WebhookRow, why: string): Promise<void> {
    const { store, clock, log, tell } = this.#options;
    const done = await store.db
      .updateTable('webhooks')
      .set({ active: 0, disabled_because: why, updated_at: isoTime(clock) })
      .where('id', '=', id)
      .where('active', '=', 1)
      .executeTakeFirst();
    if (Number(done.numUpdatedRows) === 0) return;
    log.error('a webhook was disabled', { webhook: id, why });
    await tell('webhook:disabled', { webhook_id: id, host: new URL(url).host, because: why });
  }

  async #find(id: string): Promise<WebhookRow> {
    const row = await this.#row(id);
    if (!row) throw new ReeveError('WEBHOOK_UNKNOWN', { webhook: id });
    return row;
  }

  #row(id: string): Promise<WebhookRow | undefined> {
    return this.#options.store.db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirst();
  }

  #record(tx: Parameters<typeof recordChange>[0], action: string, id: string, detail: object): Promise<void> {
    const { clock, service } = this.#options;
    return recordChange(tx, clock, service, { action, subject: `webhook:${id}`, detail });
  }
}

const GONE = 410;
const laneOf = (id: string): Lane => `webhook:${id}`;
