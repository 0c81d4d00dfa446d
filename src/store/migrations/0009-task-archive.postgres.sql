-- Its own file because of the collation, as for the events.
create table archived_tasks (
  position bigint generated always as identity primary key,
  id text collate "C" not null,
  project text collate "C" not null,
  task_id text collate "C" not null,
  state text collate "C" not null check (state in ('COMPLETED', 'REJECTED', 'CANCELLED')),
  title text collate "C" not null,
  author text collate "C" not null,
  created_at text collate "C" not null,
  ended_at text collate "C" not null,
  archived_at text collate "C" not null,
  document text collate "C" not null,
  unique (id, created_at)
);

create index archived_tasks_project on archived_tasks (project, position);
create index archived_tasks_task on archived_tasks (project, task_id);
