-- Give locks back. Only the grant with this lock_id is ended; a second release of it is recognised, and a lock that was
-- lost meanwhile is left as it is.
--   args.agent, args.lock_id
--   args.forget   1: as if it had never been granted, for a caller that could not get the rest; the lock_id stays usable
-- Outcomes: one word per lock: RELEASED · ALREADY · LOST
-- @include _locks.lua

-- The usual case first, before anything that only the others need is even set up: one lock held alone, nobody in line.
local only = items[1]
if #items == 1 and only.kind ~= 'a' and args.forget == 0 and redis.call('EXISTS', only.queue) == 0 then
  local lock = redis.call('HMGET', only.lock, 'lock_id', only.kind == 't' and 'holder_agent_id' or 'exclusive_holder', 'expires_at')
  if lock[1] == args.lock_id and lock[2] == args.agent and lock[3] > now_text then
    redis.call('DEL', only.lock)
    redis.call('HSET', only.fence, 'state', 'released')
    if whole then
      redis.call('ZREM', registry, only.lock)
      redis.call('SREM', index, only.lock)
      if only.type_index then redis.call('SREM', only.type_index, only.lock) end
    end
    tell(only, 'released', args.agent, '","lock_id":"' .. args.lock_id .. '"}')
    return with_told({ 'RELEASED' })
  end
end

-- @include _holders.lua
-- @include _queue.lua

local function verdict(item)
  local mine = item.mine
  if mine and mine.agent_id ~= args.agent then mine = nil end -- guard
  if mine and is_over(mine) then mine = nil end -- guard
  if mine then return 'RELEASED' end
  read_fence(item)
  if item.last_released == args.lock_id then return 'ALREADY' end
  return item.last_lock_id == args.lock_id and item.state == 'released' and 'ALREADY' or 'LOST'
end

local reply = {}
for n, item in ipairs(items) do
  read_holders(item)
  item.mine, item.at = grant_of(item, args.lock_id)
  reply[n] = verdict(item)
end

local function give_back_place(item)
  redis.call('ZREM', item.leases, args.lock_id)
  redis.call('HDEL', item.fence, 'lease:' .. args.lock_id)
  item.active = item.active - 1
  if item.limit then redis.call('HSET', item.lock, 'active_tasks', item.active) end
  return first_lease(item)
end

-- Answers when the first of those who stay ends.
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
  for _, holder in ipairs(item.holders) do
    if holder.agent_id == args.agent then return end -- guard
  end
  if item.kind ~= 'a' then redis.call('SREM', index, item.lock) end -- guard
end

local function remember(item, first)
  if args.forget == 1 then
    redis.call('HSET', item.fence, 'state', first and 'held' or 'released', 'last_lock_id', '')
  elseif first or item.kind == 'a' then
    redis.call('HSET', item.fence, 'last_released', args.lock_id)
  elseif #item.holders == 0 then
    redis.call('HSET', item.fence, 'state', 'released', 'last_lock_id', args.lock_id)
  end
end

-- How long it is usually held, as a running average; of use only where others wait. A token is the time of its grant.
local function learn(item)
  local held = math.max(now - tonumber(item.mine.fencing_token), 0)
  local usual = tonumber(redis.call('HGET', item.fence, 'hold_us')) or held
  redis.call('HSET', item.fence, 'hold_us', whole_number(0.8 * usual + 0.2 * held))
end

for n, item in ipairs(items) do
  if reply[n] == 'RELEASED' then
    local first = give_back(item)
    remember(item, first)
    if whole then leave_indexes(item, first) end
    tell(item, 'released', args.agent, '","lock_id":"' .. args.lock_id .. '"}')
    if redis.call('EXISTS', item.queue) == 1 then
      learn(item)
      promote(item) -- guard
    end
  end
end
return with_told(reply)
