import type { ReeveEvent } from '../events/catalogue.ts';
import type { WebhookRow } from '../store/schema.ts';

/** A subscription, as people see it: its secret is shown when it is made, and never again. */
export interface Webhook {
  readonly webhook_id: string;
  /** The address it leads to. */
  readonly target: string;
  readonly events: readonly string[];
  readonly description: string;
  readonly active: boolean;
  readonly created_at: string;
  readonly created_by: string;
  readonly updated_at: string;
  readonly failing_since?: string;
  readonly disabled_because?: string;
}

export const webhookOf = (row: WebhookRow): Webhook => ({
  webhook_id: row.id,
  target: row.url,
  events: JSON.parse(row.events) as string[],
  description: row.description,
  active: row.active === 1,
  created_at: row.created_at,
  created_by: row.created_by,
  updated_at: row.updated_at,
  ...(row.failing_since && { failing_since: row.failing_since }),
  ...(row.disabled_because && { disabled_because: row.disabled_because }),
});

/** What is sent: the event, in the form that the Standard Webhooks specification proposes, and where it stands in its stream. */
export const messageOf = ({ stream, id, event, at, source, payload }: ReeveEvent): string =>
  JSON.stringify({ type: event, timestamp: at, stream, event_id: id, source, data: payload });
