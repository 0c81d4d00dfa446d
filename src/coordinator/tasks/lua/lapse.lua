-- Look whether a task that should have ended by now still has its lease.
--   args.task
-- Outcomes: ALIVE · LOST lock_id agent status lease_class · TIMEOUT lock_id agent · IDLE (nobody works on it)
-- @include _task.lua
-- @include ../../locks/lua/_holders.lua

local t = load(args.task)
if not t or t.status ~= 'assigned' and t.status ~= 'in_progress' then
  redis.call('ZREM', key.runningTasks(), args.task)
  return { 'IDLE' }
end
local item = task_item(t.ade)
read_holders(item)
local mine = grant_of(item, t.lock_id)
if not mine or is_over(mine) then 
  return { 'LOST', t.lock_id, t.agent, t.status, redis.call('HGET', key.taskRecord(t.task), 'lease_class') or '' }
end
local deadline = tonumber(redis.call('HGET', key.taskRecord(t.task), 'deadline')) or 0
if deadline > 0 and deadline * 1000000 <= now then return { 'TIMEOUT', t.lock_id, t.agent } end
local ends = ends_us(mine)
redis.call('ZADD', key.runningTasks(), whole_number(deadline > 0 and math.min(deadline * 1000000, ends) or ends), t.task)
return { 'ALIVE' }
