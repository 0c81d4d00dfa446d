-- A small task file to try reeve with: format A (text task_id, JSON depends_on).
-- A daemon that is given no prd.db makes one from this text in its data directory.
create table tasks (
  id integer primary key autoincrement,
  task_id text not null unique,
  title text not null,
  description text,
  category text,
  epic text,
  priority integer not null default 5,
  estimated_hours real,
  status text not null default 'pending',
  depends_on text,
  assigned_agent text,
  tech_stack text,
  files_to_modify text,
  acceptance_criteria text,
  created_at text not null default current_timestamp,
  updated_at text not null default current_timestamp
);

create table redis_coordination (
  id integer primary key autoincrement,
  event_type text not null,
  task_id text,
  agent_id text,
  payload text,
  created_at text not null default current_timestamp
);

insert into tasks (task_id, title, description, category, epic, priority, estimated_hours, depends_on, tech_stack, files_to_modify, acceptance_criteria) values
  ('TASK-001', 'Set up the feedback service', 'Create the package, its build and an empty HTTP server.', 'Setup', 'Foundation', 1, 1, null, 'TypeScript, Fastify', '["package.json", "src/server.ts"]', 'npm start answers GET /health with 200'),
  ('TASK-002', 'Design the schema', 'Tables for feedback items, votes and authors.', 'Database', 'Foundation', 1, 1.5, null, 'SQLite', '["db/schema.sql"]', 'The schema loads into an empty database'),
  ('TASK-003', 'Store feedback', 'POST /feedback validates and saves an item.', 'Backend', 'Feedback', 2, 2, '["TASK-001", "TASK-002"]', 'TypeScript, zod', '["src/feedback/"]', 'A valid item is stored, an invalid one answers 400 with the field'),
  ('TASK-004', 'List feedback', 'GET /feedback pages through items, newest first.', 'Backend', 'Feedback', 3, 1, '["TASK-003"]', 'TypeScript', '["src/feedback/list.ts"]', 'A cursor leads through 1,000 items without gaps'),
  ('TASK-005', 'Vote on an item', 'One vote for each author and item; voting again takes it back.', 'Backend', 'Voting', 3, 2, '["TASK-003"]', 'TypeScript', '["src/votes/"]', 'Two votes at once by one author count once'),
  ('TASK-006', 'Sign in', 'Sessions by signed cookie.', 'Auth', 'Accounts', 2, 3, '["TASK-001"]', 'TypeScript', '["src/auth/"]', 'A forged cookie is refused'),
  ('TASK-007', 'Feedback page', 'Shows the list and lets a signed-in person vote.', 'UI', 'Frontend', 4, 4, '["TASK-004", "TASK-005", "TASK-006"]', 'React', '["web/src/feedback/"]', 'Voting shows at once and survives a reload'),
  ('TASK-008', 'Moderation queue', 'Items with three reports wait for a person.', 'Backend', 'Moderation', 5, 3, '["TASK-003", "TASK-006"]', 'TypeScript', '["src/moderation/"]', 'A reported item leaves the public list'),
  ('TASK-009', 'Load test', 'A thousand votes a second for a minute.', 'Testing', 'Release', 6, 2, '["TASK-005"]', 'k6', '["test/load/"]', 'No vote is lost, p99 under 100 ms'),
  ('TASK-010', 'Write the handbook', 'How to run, back up and restore the service.', 'Documentation', 'Release', 6, 2, '["TASK-007", "TASK-008"]', 'Markdown', '["docs/"]', 'A stranger can run it from the handbook alone');
