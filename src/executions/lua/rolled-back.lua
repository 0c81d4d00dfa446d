-- Say how the undoing of an attempt went: its holder, while it still has the task, or a person, when nobody has.
--   args.task, args.agent, args.lock_id, args.token    the lease; of a person only the name
--   args.person     1: a person says so
--   args.outcome    done, failed, or manual (left to a person)
--   args.reason     what a person should know of it
-- Outcomes: NOTED at status · NOTHING (nothing was saved that could be undone) · RUNNING agent · LATE status agent · UNKNOWN
-- @include ../../coordinator/tasks/lua/_ready.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local runs = t.status == 'assigned' or t.status == 'in_progress'
local execution = key.taskExecution(t.ade)
if args.person == 1 then
  if runs then return { 'RUNNING', t.agent } end
  if redis.call('HEXISTS', execution, 'stash_at') == 0 then return { 'NOTHING' } end
elseif not runs or not is_owner(t, args.agent, args.lock_id, args.token) then
  return { 'LATE', t.status, t.agent }
end
redis.call('HSET', execution, 'rollback', args.outcome, 'rollback_at', now_text, 'rollback_by', args.agent, 'rollback_reason', args.reason)
redis.call('EXPIRE', execution, 7776000)
local state = redis.call('GET', key.taskState(t.ade)) or ''
redis.call('XADD', key.events('task'), 'MAXLEN', '~', ctx.keep, '*', 'event', 'task:rolled_back', 'timestamp', now_text, 'payload',
  '{"task_id":"' .. t.ade .. '","outcome":"' .. args.outcome .. '","by":' .. quoted(args.agent) .. ',"reason":' .. quoted(args.reason) .. '}',
  'source', ctx.source)
audit(now_text, 'rollback', 'task:' .. t.ade, state, state, 'reason', args.reason, 'fencing_token', runs and t.token or '', 'detail',
  '{"outcome":"' .. args.outcome .. '"}')
if args.outcome == 'done' and t.undo ~= '' then
  note(t, 'undo', '')
  t.undo = ''
  if t.status == 'blocked' then settle(t) end
  write_progress()
end
return { 'NOTED', now_text, t.status }
