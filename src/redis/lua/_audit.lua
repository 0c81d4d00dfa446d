-- Appends the audit row of a change in the same atomic step as the change, so that there is no change without its row. One XADD
-- to an outbox that no length trims; the drain copies it to the store, chains it there, and takes it away.
--   at         when, as iso_time() writes it: the same text as in the event of this change, by which the two are compared
--   action     what was done, one word: claim, approve, delegate …
--   subject    to what: task:ID, approval:ID
--   from, to   the states; empty where it has none
--   …          further names and values: task (if the subject is none), agent, reason, ticket, config_hash, policy_version,
--              fencing_token, detail (JSON); an empty one is as none
-- Who, from where, for which call and why the caller says it did: ctx.actor, as JSON. A reason or ticket given here wins.
-- Where one call does the work of several callers, each brings its own: audit_by().
local audit_outbox = key.auditOutbox()
local function audit_by(actor, at, action, subject, from, to, ...)
  return redis.call('XADD', audit_outbox, '*', 'at', at, 'action', action, 'subject', subject, 'from', from, 'to', to,
    'service', ctx.source, 'actor', actor, ...)
end
local function audit(...)
  return audit_by(ctx.actor, ...)
end
