-- Every change of state, in the order of the drain. The hash of a row is over its record and the hash before it: none can be
-- changed, left out or moved without breaking all that follow. What is searched by is computed from the record, so that the two
-- cannot disagree.
create table audit_log (
  seq integer not null primary key,
  source_id text not null unique,
  record text not null,
  hash text not null,
  at text generated always as (record ->> '$.at') virtual,
  user_id text generated always as (record ->> '$.user') virtual,
  action text generated always as (record ->> '$.action') virtual,
  subject text generated always as (record ->> '$.subject') virtual,
  task_id text generated always as (record ->> '$.task') virtual
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
