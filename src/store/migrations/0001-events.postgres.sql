-- Its own file because of the collation: "C" sorts by bytes as SQLite does, and an index on it stays valid when an
-- upgrade of the operating system changes the order of its languages.
create table events (
  stream text collate "C" not null,
  id text collate "C" not null,
  event text collate "C" not null,
  at text collate "C" not null,
  source text collate "C" not null,
  task_id text collate "C",
  agent_id text collate "C",
  payload text not null,
  primary key (stream, id)
);

create index events_at on events (at);
create index events_task_id on events (task_id, at) where task_id is not null;
create index events_event on events (event, at);

create table event_cursors (
  stream text collate "C" not null primary key,
  id text collate "C" not null
);

create table reeve_probe (
  id integer not null primary key check (id = 1),
  at text not null
);
