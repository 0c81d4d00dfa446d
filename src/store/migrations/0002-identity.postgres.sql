-- Its own file because of the collation, as for the events.
create table users (
  id text collate "C" not null primary key,
  name text collate "C" not null,
  email text collate "C",
  manager text collate "C",
  roles text collate "C" not null,
  state text collate "C" not null check (state in ('active', 'removed')),
  created_at text collate "C" not null,
  updated_at text collate "C" not null,
  removed_at text collate "C"
);

create table user_names (
  canonical text collate "C" not null primary key,
  user_id text collate "C" not null references users (id),
  name text collate "C" not null,
  kind text collate "C" not null check (kind in ('id', 'email', 'alias'))
);

create index user_names_user on user_names (user_id);

create table tokens (
  id text collate "C" not null primary key,
  user_id text collate "C" not null references users (id),
  label text collate "C" not null,
  hash text collate "C" not null unique,
  scopes text collate "C" not null,
  created_at text collate "C" not null,
  created_by text collate "C" not null,
  expires_at text collate "C",
  revoked_at text collate "C",
  last_used_at text collate "C"
);

create index tokens_user on tokens (user_id);

insert into users (id, name, roles, state, created_at, updated_at)
  values ('local', 'Local operator', '["admin"]', 'active', '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z');
insert into user_names (canonical, user_id, name, kind) values ('local', 'local', 'local', 'id');
