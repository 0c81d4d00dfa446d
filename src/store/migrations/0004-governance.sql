-- The rules of the human gate. A version is never changed: a new one is added, so that a decision can be read with the rule it was made by.
create table policies (
  id text not null,
  version integer not null,
  body text not null,
  active integer not null check (active in (0, 1)),
  created_at text not null,
  created_by text not null,
  primary key (id, version)
) strict;

-- Who answers for whom, and when.
create table delegations (
  owner_id text not null,
  id text not null,
  delegate_to text not null,
  conditions text not null,
  may_cascade integer not null check (may_cascade in (0, 1)),
  active integer not null check (active in (0, 1)),
  created_at text not null,
  created_by text not null,
  expires_at text,
  primary key (owner_id, id)
) strict;

create index delegations_delegate on delegations (delegate_to);
