-- Give a task back unfinished: nothing is spent, it is offered again at once.
--   args.task, args.agent, args.lock_id, args.token    the lease
--   args.reason
-- Outcomes: DROPPED rank (its place in the queue, 0 is next; -1: it is not ready) · LATE status agent · UNKNOWN
-- @include _work.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if not is_owner(t, args.agent, args.lock_id, args.token) then return { 'LATE', t.status, t.agent } end
if not is_running(t) then
  -- Asked again: its answer was lost.
  if t.status == 'pending' or t.status == 'blocked' then return { 'DROPPED', redis.call('ZRANK', key.readyOrder(), t.task) or -1 } end
  return { 'LATE', t.status, t.agent }
end
local agent = t.agent
because = args.reason
end_work(t)
note(t, 'reason', args.reason)
return_task(t)
after_work(t)
say('task_dropped', t, agent, '{"reason":' .. quoted(args.reason) .. '}')
write_progress()
return { 'DROPPED', redis.call('ZRANK', key.readyOrder(), t.task) or -1 }
