import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import { type Clock, isoTime } from '../clock.ts';
import type { DeliveryRow, Tables } from '../store/schema.ts';

/** Where something is sent: a webhook, or a route of notifications. Each keeps its order, and each is told of an event once. */
export type Lane = `webhook:${string}` | `route:${string}`;

export interface Parcel {
  readonly lane: Lane;
  /** What it is about, by which it is known again: STREAM/ID. */
  readonly eventKey: string;
  readonly event: string;
  /** What is sent, to the byte: JSON. */
  readonly body: string;
}

/** Puts parcels on their way, in the transaction of the caller, and returns their ids. Those that are on it already are left alone. */
export async function enqueue(tx: Kysely<Tables>, clock: Clock, parcels: readonly Parcel[]): Promise<string[]> {
  if (parcels.length === 0) return [];
  const now = isoTime(clock);
  const rows = parcels.map(({ lane, eventKey, event, body }) => ({
    id: deliveryId(lane, eventKey),
    lane,
    event_key: eventKey,
    event,
    body,
    state: 'waiting' as const,
    attempts: 0,
    next_at: now,
    created_at: now,
  }));
  const lanes = [...new Set(parcels.map(({ lane }) => lane))];
  await tx
    .insertInto('delivery_lanes')
    .values(lanes.map((lane) => ({ lane, held_by: '', held_until: '' })))
    .onConflict((conflict) => conflict.column('lane').doNothing())
    .execute();
  for (let at = 0; at < rows.length; at += TOGETHER) {
    await tx
      .insertInto('deliveries')
      .values(rows.slice(at, at + TOGETHER))
      .onConflict((conflict) => conflict.columns(['lane', 'event_key']).doNothing())
      .execute();
  }
  return rows.map(({ id }) => id);
}
/** SQLite takes so many values in a statement, and no more. */
const TOGETHER = 500;

/** The same parcel has the same id, whoever packs it. */
export const deliveryId = (lane: Lane, eventKey: string): string =>
  `dlv_${createHash('sha256').update(`${lane}\n${eventKey}`).digest('hex').slice(0, 32)}`;

/** How a delivery stands, for people. What was sent is in `body`. */
export interface Delivery {
  readonly delivery_id: string;
  readonly event: string;
  readonly event_id: string;
  readonly state: DeliveryRow['state'];
  readonly attempts: number;
  readonly created_at: string;
  readonly next_at?: string;
  readonly last_at?: string;
  readonly last_answer?: string;
  readonly delivered_at?: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export const deliveryOf = (row: DeliveryRow): Delivery => ({
  delivery_id: row.id,
  event: row.event,
  event_id: row.event_key,
  state: row.state,
  attempts: row.attempts,
  created_at: row.created_at,
  ...(row.state === 'waiting' && { next_at: row.next_at }),
  ...(row.last_at && { last_at: row.last_at }),
  ...(row.last_answer && { last_answer: row.last_answer }),
  ...(row.delivered_at && { delivered_at: row.delivered_at }),
  body: JSON.parse(row.body) as Record<string, unknown>,
});
