-- What was asked for while Redis was away, and can be done when it is back: in this order, each once. `caller` and `input` are JSON.
-- `attempts` above 0: it may have been done already, and the answer was lost.
create table journal (
  seq integer primary key autoincrement,
  id text not null unique,
  operation text not null,
  caller text not null,
  input text not null,
  state text not null check (state in ('waiting', 'done', 'parked')),
  attempts integer not null,
  created_at text not null,
  ended_at text,
  outcome text
) strict;

create index journal_waiting on journal (seq) where state = 'waiting';
