-- Every change of state, in the order of the drain. Each row holds the hash of the one before it: none can be changed, left out
-- or moved without breaking all that follow.
create table audit_log (
  seq integer not null primary key,
  source_id text not null unique,
  at text not null,
  user_id text not null,
  action text not null,
  subject text not null,
  task_id text,
  from_state text not null,
  to_state text not null,
  body text not null,
  prev text not null,
  hash text not null
) strict;

create index audit_log_at on audit_log (at);
create index audit_log_user on audit_log (user_id, seq);
create index audit_log_subject on audit_log (subject, seq);
create index audit_log_task on audit_log (task_id, seq) where task_id is not null;

-- Rows about changes that were made here rather than in Redis, written in the transaction of the change. The drain takes them up.
create table audit_intake (
  id integer primary key autoincrement,
  at text not null,
  body text not null
) strict;
