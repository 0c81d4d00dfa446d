-- Its own file because of the collation, as for the events.
create table webhooks (
  id text collate "C" not null primary key,
  url text collate "C" not null,
  events text collate "C" not null,
  secret text collate "C" not null,
  description text collate "C" not null,
  active integer not null check (active in (0, 1)),
  created_at text collate "C" not null,
  created_by text collate "C" not null,
  updated_at text collate "C" not null,
  failing_since text collate "C",
  disabled_because text collate "C"
);

create table deliveries (
  position bigint generated always as identity primary key,
  id text collate "C" not null unique,
  lane text collate "C" not null,
  event_key text collate "C" not null,
  event text collate "C" not null,
  body text collate "C" not null,
  state text collate "C" not null check (state in ('waiting', 'delivered', 'dead')),
  attempts integer not null,
  next_at text collate "C" not null,
  created_at text collate "C" not null,
  last_at text collate "C",
  last_answer text collate "C",
  delivered_at text collate "C",
  unique (lane, event_key)
);

create index deliveries_waiting on deliveries (lane, position) where state = 'waiting';
create index deliveries_lane on deliveries (lane, position);
create index deliveries_created on deliveries (created_at);

create table delivery_lanes (
  lane text collate "C" not null primary key,
  held_by text collate "C" not null,
  held_until text collate "C" not null
);
