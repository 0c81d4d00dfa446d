-- What is ready: per lane and in one order, both as sorted sets, and as a public list that shows the best of it with the
-- best at its right end. What keeps a task from being ready is judged in one place.
-- @include _task.lua
-- @include _window.lua
-- @include _listing.lua

-- @include _place.lua

local function offer(t)
  -- It is there already, or a plain client took it from there and the reconcile has yet to find out.
  if redis.call('ZSCORE', key.offeredTasks(), t.task) or not is_listable(t) then return end
  if place_on_list(t.task) then mark_listed(t) end
end

-- One that must be free of collisions is filled by the reconcile, which sees all of it.
local function refill_list()
  if args.exclusive == 1 then return end
  refill(is_anything_kept_back() and function(id)
    local t = load(id)
    return t and belongs_on_list(t)
  end)
end

-- It waits for no other task's end any more.
local function leave_park(t)
  if t.parked == '' then return end
  redis.call('SREM', key.parkedTasks(t.parked), t.task)
  redis.call('ZREM', key.parkedOrder(), t.task)
  note(t, 'parked', '')
  t.parked = ''
end

-- Takes a task from wherever it was ready. False if it was on the public list and is not any more: a plain client has it.
local function withdraw(t)
  leave_park(t)
  redis.call('ZREM', key.readyTasks(t.lane), t.task)
  redis.call('ZREM', key.readyOrder(), t.task)
  local offered = redis.call('ZREM', key.offeredTasks(), t.task) == 1
  local there = public('LREM', key.taskQueue(), -1, t.task) > 0
  unmark_listed(t)
  if offered then refill_list() end
  return there or not offered
end

-- Everything but its dependencies and its gate that keeps a task from the queue.
local function is_held(t)
  return t.quarantine ~= '' or t.aside ~= '' or (t.undo or '') ~= '' or redis.call('ZSCORE', key.delayedTasks(), t.task)
end

-- Offered, and not on the list: a plain client has it. What is on the list is taken from there on the way.
local function is_taken(t)
  return t.status == 'pending' and redis.call('ZSCORE', key.offeredTasks(), t.task) and public('LREM', key.taskQueue(), -1, t.task) == 0
end

-- Everything else is well with it: when the pause ends it is ready again, in its old place.
local function hold_for_pause(t, pause)
  redis.call('ZADD', key.pausedTasks(), t.score, t.task)
  if t.paused ~= pause then note(t, 'paused', pause) end
  t.paused = pause
end

local function make_ready(t)
  leave_park(t)
  set_status(t, 'pending')
  redis.call('ZADD', key.readyTasks(t.lane), t.score, t.task)
  redis.call('ZADD', key.readyOrder(), t.score, t.task)
  offer(t)
  redis.call('PUBLISH', key.readyChannel(), t.lane)
end

-- Puts a task that nobody works on where it belongs now: ready, or blocked. True if it became ready.
local function settle(t)
  local waits = is_held(t) or redis.call('EXISTS', key.openDependencies(t.task)) == 1
    or redis.call('GET', key.taskState(t.ade)) ~= 'APPROVED'
  local pause = not waits and pause_of(t)
  -- What a plain client has taken no pause takes back: the reconcile will find it.
  if pause and is_taken(t) then pause = nil end
  if not waits and not pause then
    make_ready(t)
    return true
  end
  if t.status == 'pending' then withdraw(t) end
  set_status(t, 'blocked')
  if pause then hold_for_pause(t, pause) else leave_pause(t) end
  return false
end

-- Tasks that would have collided with this one may try again.
local function unpark(task)
  local parked = key.parkedTasks(task)
  local waiting_for_it = redis.call('SMEMBERS', parked)
  if #waiting_for_it == 0 then return end
  redis.call('DEL', parked)
  for _, id in ipairs(waiting_for_it) do
    local t = load(id)
    if t and t.status == 'pending' and t.parked == task then settle(t) end
  end
end

-- One dependency less, for each that waited for this task. Answers with those that became ready.
local function release_dependents(task)
  local released = {}
  for _, id in ipairs(redis.call('SMEMBERS', key.dependents(task))) do
    local open = key.openDependencies(id)
    if redis.call('SREM', open, task) == 1 and redis.call('EXISTS', open) == 0 then
      local t = load(id)
      if t and t.status == 'blocked' and settle(t) then released[#released + 1] = id end
    end
  end
  return released
end
