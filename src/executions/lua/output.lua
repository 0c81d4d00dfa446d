-- Keep what an attempt wrote. Only its holder may: what a late one wrote is not the output of this attempt.
--   args.task, args.agent, args.lock_id, args.token      the lease
--   args.output, args.output_key, args.output_store      its text, cut if it is long; where all of it lies, if so
--   args.bytes                                           of all of it
--   args.weak    1: only if this attempt has left none yet
-- Outcomes: KEPT · HAS (weak, and there is one) · LATE status agent · UNKNOWN
-- @include ../../coordinator/tasks/lua/_task.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if t.status ~= 'assigned' and t.status ~= 'in_progress' or not is_owner(t, args.agent, args.lock_id, args.token) then
  return { 'LATE', t.status, t.agent }
end
local execution = key.taskExecution(t.ade)
if args.weak == 1 and redis.call('HGET', execution, 'output_token') == t.token then return { 'HAS' } end
redis.call('HSET', execution, 'output', args.output, 'output_bytes', args.bytes, 'output_token', t.token)
if args.output_key == '' then
  redis.call('HDEL', execution, 'output_key', 'output_store')
else
  redis.call('HSET', execution, 'output_key', args.output_key, 'output_store', args.output_store)
end
return { 'KEPT' }
