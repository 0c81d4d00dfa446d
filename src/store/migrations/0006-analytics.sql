-- Which events were counted already. Kept for as long as one of them could come again.
create table stat_seen (
  stream text not null,
  id text not null,
  primary key (stream, id)
) strict;

-- How often what happened on which day (UTC).
create table stat_days (
  day text not null,
  event text not null,
  count integer not null,
  primary key (day, event)
) strict;

-- When a task reached what, the first time; `changed_at` is the newest event it is known by.
create table stat_tasks (
  task_id text not null primary key,
  created_at text not null,
  submitted_at text,
  approved_at text,
  started_at text,
  ended_at text,
  outcome text check (outcome in ('completed', 'cancelled', 'rejected')),
  changed_at text not null
) strict;

create index stat_tasks_created on stat_tasks (created_at);
create index stat_tasks_ended on stat_tasks (ended_at) where ended_at is not null;

create table stat_approvals (
  approval_id text not null primary key,
  task_id text not null,
  reviewer text not null,
  asked_at text,
  answered_at text,
  answer text
) strict;

create index stat_approvals_answered on stat_approvals (answered_at) where answered_at is not null;
