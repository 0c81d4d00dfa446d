import type { Generated, GeneratedAlways, Insertable, Selectable } from 'kysely';

/** The tables as the migrations leave them. Times are RFC 3339 in UTC, so that they sort as text in both dialects. */
export interface Tables {
  events: EventsTable;
  event_cursors: EventCursorsTable;
  users: UsersTable;
  user_names: UserNamesTable;
  tokens: TokensTable;
  audit_log: AuditLogTable;
  audit_intake: AuditIntakeTable;
  policies: PoliciesTable;
  delegations: DelegationsTable;
  webhooks: WebhooksTable;
  deliveries: DeliveriesTable;
  delivery_lanes: DeliveryLanesTable;
  stat_seen: StatSeenTable;
  stat_days: StatDaysTable;
  stat_tasks: StatTasksTable;
  stat_approvals: StatApprovalsTable;
  journal: JournalTable;
  archived_tasks: ArchivedTasksTable;
  reeve_probe: ProbeTable;
  reeve_migrations: MigrationsTable;
}

/** One entry of a Redis event stream. `payload` is JSON; `id` is the stream's own, so archiving twice changes nothing. */
export interface EventsTable {
  stream: string;
  id: string;
  event: string;
  at: string;
  source: string;
  task_id: string | null;
  agent_id: string | null;
  payload: string;
}
export type EventRow = Selectable<EventsTable>;
export type NewEventRow = Insertable<EventsTable>;

/** The last id of a stream that the archive holds. */
export interface EventCursorsTable {
  stream: string;
  id: string;
}

/** `roles` is a JSON list. */
export interface UsersTable {
  id: string;
  name: string;
  email: string | null;
  manager: string | null;
  roles: string;
  state: 'active' | 'removed';
  created_at: string;
  updated_at: string;
  removed_at: string | null;
}
export type UserRow = Selectable<UsersTable>;

/** Every name of every user, in the form in which names are compared. */
export interface UserNamesTable {
  canonical: string;
  user_id: string;
  name: string;
  kind: 'id' | 'email' | 'alias';
}

/** `scopes` is a JSON list; `hash` is all that is kept of the token itself. */
export interface TokensTable {
  id: string;
  user_id: string;
  label: string;
  hash: string;
  scopes: string;
  created_at: string;
  created_by: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}
export type TokenRow = Selectable<TokensTable>;

/** `record` is the canonical JSON that `hash` is over, after the hash before it; the last five are computed from it. */
export interface AuditLogTable {
  seq: number;
  /** The id that the outbox gave it: draining twice changes nothing. */
  source_id: string;
  record: string;
  hash: string;
  at: GeneratedAlways<string>;
  user_id: GeneratedAlways<string>;
  action: GeneratedAlways<string>;
  subject: GeneratedAlways<string>;
  task_id: GeneratedAlways<string | null>;
}

/** `id` is given by the database, in the order of writing, and never again. */
export interface AuditIntakeTable {
  id: Generated<number>;
  at: string;
  body: string;
}

/** `body` is JSON; the newest active version of an id counts. */
export interface PoliciesTable {
  id: string;
  version: number;
  body: string;
  active: number;
  created_at: string;
  created_by: string;
}

/** `conditions` is JSON. */
export interface DelegationsTable {
  kind: 'instead' | 'follow';
  owner_id: string;
  id: string;
  delegate_to: string;
  conditions: string;
  may_cascade: number;
  active: number;
  created_at: string;
  created_by: string;
  expires_at: string | null;
}

/** `events` is a JSON list of patterns. */
export interface WebhooksTable {
  id: string;
  url: string;
  events: string;
  secret: string;
  description: string;
  active: number;
  created_at: string;
  created_by: string;
  updated_at: string;
  failing_since: string | null;
  disabled_because: string | null;
}
export type WebhookRow = Selectable<WebhooksTable>;

/** `position` is given by the database, in the order of writing. */
export interface DeliveriesTable {
  position: Generated<number>;
  id: string;
  lane: string;
  event_key: string;
  event: string;
  body: string;
  state: 'waiting' | 'delivered' | 'dead';
  attempts: number;
  next_at: string;
  created_at: string;
  last_at: string | null;
  last_answer: string | null;
  delivered_at: string | null;
}
export type DeliveryRow = Selectable<DeliveriesTable>;

interface DeliveryLanesTable {
  lane: string;
  held_by: string;
  held_until: string;
}

interface StatSeenTable {
  stream: string;
  id: string;
}

interface StatDaysTable {
  day: string;
  event: string;
  count: number;
}

export interface StatTasksTable {
  task_id: string;
  created_at: string;
  submitted_at: string | null;
  approved_at: string | null;
  started_at: string | null;
  ended_at: string | null;
  outcome: 'completed' | 'cancelled' | 'rejected' | null;
  changed_at: string;
}
export type StatTaskRow = Selectable<StatTasksTable>;

export interface StatApprovalsTable {
  approval_id: string;
  task_id: string;
  reviewer: string;
  asked_at: string | null;
  answered_at: string | null;
  answer: string | null;
}

/** `seq` is given by the database, in the order of asking. `caller` and `input` are JSON. */
export interface JournalTable {
  seq: Generated<number>;
  id: string;
  operation: string;
  caller: string;
  input: string;
  state: 'waiting' | 'done' | 'parked';
  attempts: number;
  created_at: string;
  ended_at: string | null;
  outcome: string | null;
}
export type JournalRow = Selectable<JournalTable>;

/** `document` is JSON; `position` is given by the database, in the order of archiving. */
export interface ArchivedTasksTable {
  position: Generated<number>;
  id: string;
  project: string;
  task_id: string;
  state: 'COMPLETED' | 'REJECTED' | 'CANCELLED';
  title: string;
  author: string;
  created_at: string;
  ended_at: string;
  archived_at: string;
  document: string;
}
export type ArchivedTaskRow = Selectable<ArchivedTasksTable>;
export type NewArchivedTaskRow = Insertable<ArchivedTasksTable>;

interface ProbeTable {
  id: number;
  at: string;
}

/** Which migrations were applied, with the checksum of the text that was. */
interface MigrationsTable {
  name: string;
  checksum: string;
  applied_at: string;
}
