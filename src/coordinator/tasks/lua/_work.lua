-- Beginning and ending work: the locks, the marks of what is held, the agent's row. A task is worked on under one lease, its
-- task lock; its resources and its place in the agent's capacity are taken and given back with it.
-- @include _ready.lua
-- @include ../../locks/lua/_holders.lua
-- @include ../../locks/lua/_queue.lua
local forget = false
-- @include ../../locks/lua/_free.lua

local AGENT_SECONDS = 86400

local function mark_of(claim, task)
  return claim[4] .. '\0' .. task
end

local function marks_for(claim)
  return claim[3] == 's' and key.heldShared() or key.heldExclusive()
end

-- Its key ended before anyone noticed, and the sweeper has not come by: what it would do is done now.
local function end_unseen(item)
  read_fence(item)
  if item.state ~= 'held' or item.sharing or item.last_lock_id ~= args.lock_id then return end
  redis.call('HSET', item.fence, 'state', 'expired')
  leave_indexes(item)
  tell(item, 'expired', args.agent, '","lock_id":"' .. args.lock_id .. '","fencing_token":"' .. whole_number(item.token) .. '"}')
end

-- Its time was over, and nobody counts it any more.
local function forget_place(item)
  redis.call('ZREM', item.leases, args.lock_id)
  redis.call('HDEL', item.fence, 'lease:' .. args.lock_id)
end

local function free_if_mine(item)
  read_holders(item)
  item.mine, item.at = grant_of(item, args.lock_id)
  if item.mine and item.mine.agent_id == args.agent then free(item)
  elseif item.kind == 'a' then forget_place(item)
  elseif #item.holders == 0 then end_unseen(item) end
end

-- Ends the lease of a task and all that hangs on it. Locks that others have by now are left as they are.
local function end_work(t)
  act_as(t.agent, t.lock_id)
  together = {}
  free_if_mine(task_item(t.ade))
  for _, claim in ipairs(claims_of(t)) do
    redis.call('ZREM', marks_for(claim), mark_of(claim, t.task))
    free_if_mine(resource_item(claim))
  end
  free_if_mine(place_item(t.agent))
  tell_of_all('released', '",')
  redis.call('ZREM', key.runningTasks(), t.task)
  redis.call('HDEL', key.agentClaims(t.agent), t.task)
  local agent = key.agent(t.agent)
  if redis.call('EXISTS', agent) == 1 then
    local left = redis.call('HKEYS', key.agentClaims(t.agent))[1]
    public('HSET', agent, 'current_task', left or '', 'status', left and 'working' or 'idle')
    redis.call('EXPIRE', agent, AGENT_SECONDS)
  end
end

-- Wakes whoever waited for this task to end, in whatever way.
local function after_work(t)
  unpark(t.task)
end

local function is_running(t)
  return t.status == 'assigned' or t.status == 'in_progress'
end

-- An attempt ended without success that had saved what undoes it. Where the next worker is to do that it goes back to the queue; else
-- it stays away from there until a person has, for another attempt would build on the ruins of this one.
local function owe_rollback(t)
  local execution = key.taskExecution(t.ade)
  local left = redis.call('HMGET', execution, 'stash_at', 'rollback')
  local strategy = left[1] and left[2] ~= 'done' and redis.call('HGET', key.taskConfig(t.ade), 'rollback_strategy')
  if not strategy or strategy == 'none' then return end
  local is_for_person = strategy == 'manual' or left[2] == 'manual' or left[2] == 'failed'
  redis.call('HSET', execution, 'rollback', left[2] == 'failed' and 'failed' or is_for_person and 'manual' or 'owed')
  if not is_for_person then return end
  t.undo = '1'
  note(t, 'undo', t.undo)
end

-- Back to the queue: the lifecycle first, then wherever it belongs.
local function return_task(t)
  owe_rollback(t)
  move(t, 'APPLYING', 'APPROVED')
  return settle(t)
end
