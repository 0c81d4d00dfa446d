-- A task that had ended is to be done after all: it passes the gate anew, and those that have not begun wait for it again.
-- One that runs goes on; it waits only if it comes back unfinished.
-- @include _review.lua
-- @include _edges.lua

local function wait_again(task)
  for _, id in ipairs(redis.call('SMEMBERS', key.dependents(task))) do
    local waiting_task = load(id)
    local status = waiting_task and waiting_task.status
    if status and status ~= 'completed' and status ~= 'failed' then redis.call('SADD', key.openDependencies(id), task) end
    if status == 'pending' or status == 'blocked' then settle(waiting_task) end
  end
end

-- Leaves it at the gate if people are to be asked, else approved; where it then belongs is for the caller to settle.
local function bring_back(t, is_gated, by, reason)
  local from = redis.call('GET', key.taskState(t.ade)) or 'CANCELLED'
  move(t, from, 'DRAFT')
  void_votes(t, by, reason)
  if not is_gated then
    move(t, 'DRAFT', 'SUBMITTED')
    move(t, 'SUBMITTED', 'APPROVED')
  end
  redis.call('ZREM', key.deadTasks(), t.task)
  wait_again(t.task)
  for _, id in ipairs(public('SMEMBERS', key.taskDependencies(t.task))) do
    if waits_for(t.if_failed, id) then redis.call('SADD', key.openDependencies(t.task), id) end
  end
end
