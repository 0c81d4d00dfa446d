-- The archive of the event streams: one row per entry, under the stream and id that Redis gave it.
create table events (
  stream text not null,
  id text not null,
  event text not null,
  at text not null,
  source text not null,
  task_id text,
  agent_id text,
  payload text not null,
  primary key (stream, id)
) strict;

create index events_at on events (at);
create index events_task_id on events (task_id, at) where task_id is not null;
create index events_event on events (event, at);

-- How far each stream has been archived. Written in the transaction that writes the rows, so that the two agree.
create table event_cursors (
  stream text not null primary key,
  id text not null
) strict;

-- One row, rewritten by each health check: only a real commit shows that the database can be written.
create table reeve_probe (
  id integer not null primary key check (id = 1),
  at text not null
) strict;
