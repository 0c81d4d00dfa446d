-- Tasks that ended, kept when Redis has forgotten them. `document` is JSON: what was to be done, what people said, what became of it.
-- `id` is the one in ADE. An id may be used anew after a reset, so that a task is known by its id and its creation.
create table archived_tasks (
  position integer primary key autoincrement,
  id text not null,
  project text not null,
  task_id text not null,
  state text not null check (state in ('COMPLETED', 'REJECTED', 'CANCELLED')),
  title text not null,
  author text not null,
  created_at text not null,
  ended_at text not null,
  archived_at text not null,
  document text not null,
  unique (id, created_at)
) strict;

create index archived_tasks_project on archived_tasks (project, position);
create index archived_tasks_task on archived_tasks (project, task_id);
