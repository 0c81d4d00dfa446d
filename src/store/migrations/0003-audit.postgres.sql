-- Its own file because of the collation, as for the events.
create table audit_log (
  seq bigint not null primary key,
  source_id text collate "C" not null unique,
  at text collate "C" not null,
  user_id text collate "C" not null,
  action text collate "C" not null,
  subject text collate "C" not null,
  task_id text collate "C",
  from_state text collate "C" not null,
  to_state text collate "C" not null,
  body text collate "C" not null,
  prev text collate "C" not null,
  hash text collate "C" not null
);

create index audit_log_at on audit_log (at);
create index audit_log_user on audit_log (user_id, seq);
create index audit_log_subject on audit_log (subject, seq);
create index audit_log_task on audit_log (task_id, seq) where task_id is not null;

create table audit_intake (
  id bigint generated always as identity primary key,
  at text collate "C" not null,
  body text collate "C" not null
);
