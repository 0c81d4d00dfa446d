-- Its own file because of the collation, as for the events.
create table journal (
  seq bigint generated always as identity primary key,
  id text collate "C" not null unique,
  operation text collate "C" not null,
  caller text collate "C" not null,
  input text collate "C" not null,
  state text collate "C" not null check (state in ('waiting', 'done', 'parked')),
  attempts integer not null,
  created_at text collate "C" not null,
  ended_at text collate "C",
  outcome text collate "C"
);

create index journal_waiting on journal (seq) where state = 'waiting';
