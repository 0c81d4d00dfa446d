-- Its own file because of the collation, as for the events, and because PostgreSQL stores what it computes.
create table audit_log (
  seq bigint not null primary key,
  source_id text collate "C" not null unique,
  record text collate "C" not null,
  hash text collate "C" not null,
  at text collate "C" generated always as ((record::jsonb) ->> 'at') stored,
  user_id text collate "C" generated always as ((record::jsonb) ->> 'user') stored,
  action text collate "C" generated always as ((record::jsonb) ->> 'action') stored,
  subject text collate "C" generated always as ((record::jsonb) ->> 'subject') stored,
  task_id text collate "C" generated always as ((record::jsonb) ->> 'task') stored
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
