import type { Clock } from '../clock.ts';
import { isoTime } from '../clock.ts';
import { ReeveError } from '../errors.ts';
import type { Store } from '../store/database.ts';
import { type Delivery, deliveryOf, type Lane } from './delivery.ts';

export interface DeliveriesOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** There is something to send again. */
  readonly onWaiting: () => void;
}

export interface DeliveryFilter {
  readonly lanes: Lane | `${'webhook' | 'route'}:*`;
  readonly state?: Delivery['state'] | undefined;
  readonly limit: number;
}

/** The log of what was sent, what waits, and what was given up. */
export class Deliveries {
  readonly #options: DeliveriesOptions;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** The newest first. */
  async list({ lanes, state, limit }: DeliveryFilter): Promise<(Delivery & { readonly lane: string })[]> {
    let query = this.#options.store.db.selectFrom('deliveries').selectAll();
    query = lanes.endsWith(':*')
      ? query.where('lane', '>=', lanes.slice(0, -1)).where('lane', '<', `${lanes.slice(0, -2)};`)
      : query.where('lane', '=', lanes);
    if (state) query = query.where('state', '=', state);
    const rows = await query.orderBy('position', 'desc').limit(limit).execute();
    return rows.map((row) => ({ ...deliveryOf(row), lane: row.lane }));
  }

  /** Sends it once more, under the same id, whatever became of it before. */
  async redeliver(id: string, kind: 'webhook' | 'route'): Promise<Delivery> {
    const { store, clock } = this.#options;
    const row = await store.db
      .updateTable('deliveries')
      .set({ state: 'waiting', attempts: 0, next_at: isoTime(clock) })
      .where('id', '=', id)
      .where('lane', 'like', `${kind}:%`)
      .returningAll()
      .executeTakeFirst();
    if (!row) throw new ReeveError('DELIVERY_UNKNOWN', { delivery: id });
    this.#options.onWaiting();
    return deliveryOf(row);
  }

  async counts(): Promise<{ readonly waiting: number; readonly dead: number }> {
    const rows = await this.#options.store.db
      .selectFrom('deliveries')
      .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
      .where('state', '!=', 'delivered')
      .groupBy('state')
      .execute();
    const of = (state: string) => Number(rows.find((row) => row.state === state)?.count ?? 0);
    return { waiting: of('waiting'), dead: of('dead') };
  }
}
