-- Its own file because of the collation, as for the events.
create table stat_seen (
  stream text collate "C" not null,
  id text collate "C" not null,
  primary key (stream, id)
);

create table stat_days (
  day text collate "C" not null,
  event text collate "C" not null,
  count integer not null,
  primary key (day, event)
);

create table stat_tasks (
  task_id text collate "C" not null primary key,
  created_at text collate "C" not null,
  submitted_at text collate "C",
  approved_at text collate "C",
  started_at text collate "C",
  ended_at text collate "C",
  outcome text collate "C" check (outcome in ('completed', 'cancelled', 'rejected')),
  changed_at text collate "C" not null
);

create index stat_tasks_created on stat_tasks (created_at);
create index stat_tasks_ended on stat_tasks (ended_at) where ended_at is not null;

create table stat_approvals (
  approval_id text collate "C" not null primary key,
  task_id text collate "C" not null,
  reviewer text collate "C" not null,
  asked_at text collate "C",
  answered_at text collate "C",
  answer text collate "C"
);

create index stat_approvals_answered on stat_approvals (answered_at) where answered_at is not null;
