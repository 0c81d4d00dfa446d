-- Who wants to be told of which events, and where. `events` is a JSON list of patterns. The secret signs what is sent; it must be
-- read back to do so, and nothing but the signing does.
create table webhooks (
  id text not null primary key,
  url text not null,
  events text not null,
  secret text not null,
  description text not null,
  active integer not null check (active in (0, 1)),
  created_at text not null,
  created_by text not null,
  updated_at text not null,
  failing_since text,
  disabled_because text
) strict;

-- What is sent out: to a webhook or to a route of notifications, each a lane of its own. One row for each event and lane, however
-- often it is read or tried. `body` is what goes out, to the byte.
create table deliveries (
  position integer primary key autoincrement,
  id text not null unique,
  lane text not null,
  event_key text not null,
  event text not null,
  body text not null,
  state text not null check (state in ('waiting', 'delivered', 'dead')),
  attempts integer not null,
  next_at text not null,
  created_at text not null,
  last_at text,
  last_answer text,
  delivered_at text,
  unique (lane, event_key)
) strict;

create index deliveries_waiting on deliveries (lane, position) where state = 'waiting';
create index deliveries_lane on deliveries (lane, position);
create index deliveries_created on deliveries (created_at);

-- One sender at a time for each lane, so that its deliveries keep their order.
create table delivery_lanes (
  lane text not null primary key,
  held_by text not null,
  held_until text not null
) strict;
