-- Who may do what. A user is removed, never deleted: what it did keeps its name.
create table users (
  id text not null primary key,
  name text not null,
  email text,
  manager text,
  roles text not null,
  state text not null check (state in ('active', 'removed')),
  created_at text not null,
  updated_at text not null,
  removed_at text
) strict;

-- Everything a user may be called, in the form in which names are compared: the id, the address, the aliases. One name, one person.
create table user_names (
  canonical text not null primary key,
  user_id text not null references users (id),
  name text not null,
  kind text not null check (kind in ('id', 'email', 'alias'))
) strict;

create index user_names_user on user_names (user_id);

-- A token is known by its hash alone: nobody can read one back.
create table tokens (
  id text not null primary key,
  user_id text not null references users (id),
  label text not null,
  hash text not null unique,
  scopes text not null,
  created_at text not null,
  created_by text not null,
  expires_at text,
  revoked_at text,
  last_used_at text
) strict;

create index tokens_user on tokens (user_id);

-- The admin that whoever reaches the daemon on its own machine acts as, until the first token is made.
insert into users (id, name, roles, state, created_at, updated_at)
  values ('local', 'Local operator', '["admin"]', 'active', '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z');
insert into user_names (canonical, user_id, name, kind) values ('local', 'local', 'local', 'id');
