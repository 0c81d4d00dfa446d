-- End a task with success. Only its holder may; a second completion of the same lease is recognised; what comes too late is
-- kept for a person and changes nothing. Releases those that waited, in time proportional to their edges.
--   args.task, args.agent, args.lock_id, args.token    the lease; lock_id and token may be empty for one who has only its name
--   args.rest     the result after its first four fields, as JSON text: "files_modified":[…],"notes":"…","errors":[…]}
--   args.say_raw  1: adopted from a plain client
-- Outcomes: COMPLETED at task… (those that became ready) · ALREADY at · LATE status agent · UNKNOWN
-- @include _work.lua
-- @include _late.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if not is_running(t) or not is_owner(t, args.agent, args.lock_id, args.token) then
  if t.status == 'completed' and is_owner(t, args.agent, args.lock_id, args.token) then
    return { 'ALREADY', redis.call('HGET', key.taskExecution(t.ade), 'completed_at') or now_text }
  end
  return park_result(t, '{"task_id":"' .. t.task .. '","agent_id":"' .. args.agent .. '","completed_at":"' .. now_text .. '",' .. args.rest)
end

redis.call('SET', key.taskResult(t.task), '{"task_id":"' .. t.task .. '","agent_id":"' .. t.agent .. '","started_at":"' .. t.claimed_at
  .. '","completed_at":"' .. now_text .. '",' .. args.rest)
end_work(t)
set_status(t, 'completed')
move(t, 'APPLYING', 'COMPLETED')
redis.call('HSET', key.taskExecution(t.ade), 'completed_at', now_text, 'result', 'success')
local released = release_dependents(t.task)
after_work(t)
say('task_completed', t, t.agent, '{"released":' .. #released .. (args.say_raw == 1 and ',"raw":true}' or '}'))
write_progress()
return { 'COMPLETED', now_text, unpack(released, 1, math.min(#released, 1000)) }
