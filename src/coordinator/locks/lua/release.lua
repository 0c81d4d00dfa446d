-- Give locks back. Only the grant with this lock_id is ended; a second release of it is recognised, and a lock that was
-- lost meanwhile is left as it is. All the locks of one call are judged before any is given back.
--   args.agent, args.lock_id
--   args.forget   1: as if it had never been granted, for a caller that could not get the rest; the lock_id stays usable
-- Outcomes: one word per lock: RELEASED · ALREADY · LOST
-- @include _locks.lua
-- @include _queue.lua

local reply = {}
for n, item in ipairs(items) do
  read(item)
  item.mine, item.at = grant_of(item, args.lock_id)
  if item.mine and (item.mine.agent_id or args.agent) == args.agent and not is_over(item.mine) then -- guard
    reply[n] = 'RELEASED'
  elseif item.last_released == args.lock_id or item.last_lock_id == args.lock_id and item.state == 'released' then
    reply[n] = 'ALREADY'
  else
    reply[n] = 'LOST'
  end
end

local function holds_another(item)
  for _, holder in ipairs(item.holders) do
    if holder.agent_id == args.agent then return true end
  end
end

local function give_back_place(item)
  redis.call('ZREM', item.leases, args.lock_id)
  redis.call('HDEL', item.fence, 'lease:' .. args.lock_id)
  item.active = math.max(item.active - 1, 0)
  if item.limit then redis.call('HSET', item.lock, 'active_tasks', item.active) end -- guard
  local first = redis.call('ZRANGE', item.leases, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) * 1000000
end

-- Answers when the first of the remaining holders ends.
local function give_back(item)
  if item.kind == 'a' then return give_back_place(item) end
  table.remove(item.holders, item.at)
  if #item.holders > 0 then return write_shared(item) end
  redis.call('DEL', item.lock)
end

local function leave_indexes(item, first)
  if first then
    redis.call('ZADD', registry, seconds(first), item.lock)
  else
    redis.call('ZREM', registry, item.lock) -- guard
    if item.type_index then redis.call('SREM', item.type_index, item.lock) end -- guard
  end
  if not holds_another(item) then redis.call('SREM', index, item.lock) end -- guard
end

local function remember(item, first)
  if args.forget == 1 then
    redis.call('HSET', item.fence, 'state', first and 'held' or 'released', 'last_lock_id', '')
    return
  end
  -- The token is the time of the grant in µs: good enough to learn how long this lock is usually held.
  local held = math.max(now - tonumber(item.mine.fencing_token), 0)
  local hold_us = item.hold_us and 0.8 * item.hold_us + 0.2 * held or held
  if first or item.kind == 'a' then
    redis.call('HSET', item.fence, 'last_released', args.lock_id, 'hold_us', whole_number(hold_us)) -- guard
  else
    redis.call('HSET', item.fence, 'state', 'released', 'last_lock_id', args.lock_id, 'hold_us', whole_number(hold_us)) -- guard
  end
end

for n, item in ipairs(items) do
  if reply[n] == 'RELEASED' then
    local first = give_back(item)
    remember(item, first)
    if whole then leave_indexes(item, first) end
    tell(item, 'released', args.agent, ',"lock_id":"' .. args.lock_id .. '"')
    if redis.call('EXISTS', item.queue) == 1 then promote(item) end -- guard
  end
end
return with_told(reply)
