import type { Insertable, Selectable } from 'kysely';

/** The tables as the migrations leave them. Times are RFC 3339 in UTC, so that they sort as text in both dialects. */
export interface Tables {
  events: EventsTable;
  event_cursors: EventCursorsTable;
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
