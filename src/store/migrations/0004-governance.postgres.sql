-- Its own file because of the collation, as for the events.
create table policies (
  id text collate "C" not null,
  version integer not null,
  body text collate "C" not null,
  active integer not null check (active in (0, 1)),
  created_at text collate "C" not null,
  created_by text collate "C" not null,
  primary key (id, version)
);

create table delegations (
  owner_id text collate "C" not null,
  id text collate "C" not null,
  delegate_to text collate "C" not null,
  conditions text collate "C" not null,
  may_cascade integer not null check (may_cascade in (0, 1)),
  active integer not null check (active in (0, 1)),
  created_at text collate "C" not null,
  created_by text collate "C" not null,
  expires_at text collate "C",
  primary key (owner_id, id)
);

create index delegations_delegate on delegations (delegate_to);
