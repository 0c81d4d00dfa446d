-- Whether somebody answers in the owner's place, or the owner goes along with what that one approves. The index is asked with every approval.
alter table delegations add column kind text not null default 'instead' check (kind in ('instead', 'follow'));

create index delegations_follow on delegations (delegate_to) where kind = 'follow';
