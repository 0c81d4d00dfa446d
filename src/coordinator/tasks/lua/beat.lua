-- Renew the lease of a task: its lock, the locks of what it works on and the place of its agent, together or not at all.
--   args.task, args.agent, args.lock_id, args.token    the lease; lock_id and token may be empty for one who has only its name
--   args.extend_us, args.extend_agent_us               how long from now, by the class of the lease
-- Outcomes: EXTENDED expires_at heartbeats · LATE status agent · UNKNOWN
-- @include _task.lua
-- @include ../../locks/lua/_holders.lua
-- @include ../../locks/lua/_renew.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local late = { 'LATE', t.status, t.agent }
if t.status ~= 'assigned' and t.status ~= 'in_progress' or not is_owner(t, args.agent, args.lock_id, args.token) then return late end
act_as(t.agent, t.lock_id)
-- A place has no class of its own, and its end counts the grace in.
if redis.call('HGET', key.taskRecord(t.task), 'lease_class') == 'agent' then args.extend_us = args.extend_agent_us + args.grace_us end

-- A plain client has only the lock of its task: it asked for nothing else.
local items = {}
if string.sub(t.agent, 1, 4) ~= 'raw.' then
  for _, claim in ipairs(claims_of(t)) do items[#items + 1] = resource_item(claim) end
  items[#items + 1] = place_item(t.agent)
end
items[#items + 1] = task_item(t.ade)
local renewed = renew_all(items)
if renewed[1] == 'LOST' then return late end
redis.call('EXPIRE', key.agent(t.agent), 86400)
return renewed
