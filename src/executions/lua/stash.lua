-- Keep what undoes an attempt, before it changes anything. The first one stands until the attempt is undone: a later one would
-- save what a broken attempt left behind as if it had always been so.
--   args.task, args.agent, args.lock_id, args.token    the lease
--   args.stash, args.stash_key, args.stash_store       its text, if short; else where it lies
--   args.encoding, args.bytes, args.sha256             how the text is to be read; of all of it
--   args.command                                       what undoes it, for people to see
-- Outcomes: KEPT at · SAME at · STANDS at by · LATE status agent · UNKNOWN
-- @include ../../coordinator/tasks/lua/_task.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if t.status ~= 'assigned' and t.status ~= 'in_progress' or not is_owner(t, args.agent, args.lock_id, args.token) then
  return { 'LATE', t.status, t.agent }
end
local execution = key.taskExecution(t.ade)
local had = redis.call('HMGET', execution, 'stash_at', 'rollback', 'stash_token', 'stash_sha256', 'stash_by')
-- One of an attempt that succeeded, or that nobody wants undone, has no word about its rollback.
if had[1] and had[2] ~= 'done' and (had[2] or had[3] == t.token) then
  if had[3] == t.token and had[4] == args.sha256 then return { 'SAME', had[1] } end
  return { 'STANDS', had[1], had[5] }
end
redis.call('HDEL', execution, 'rollback', 'rollback_at', 'rollback_by', 'rollback_reason')
redis.call('HSET', execution, 'stash', args.stash, 'stash_key', args.stash_key, 'stash_store', args.stash_store, 'stash_encoding', args.encoding,
  'stash_bytes', args.bytes, 'stash_sha256', args.sha256, 'stash_at', now_text, 'stash_by', t.agent, 'stash_token', t.token,
  'stash_command', args.command)
redis.call('XADD', key.events('task'), 'MAXLEN', '~', ctx.keep, '*', 'event', 'task:stashed', 'timestamp', now_text, 'payload',
  '{"task_id":"' .. t.ade .. '","agent_id":"' .. t.agent .. '","bytes":' .. args.bytes .. '}', 'source', ctx.source)
audit(now_text, 'stash', 'task:' .. t.ade, 'APPLYING', 'APPLYING', 'agent', t.agent, 'fencing_token', t.token, 'detail',
  '{"sha256":"' .. args.sha256 .. '","bytes":' .. args.bytes .. '}')
return { 'KEPT', now_text }
