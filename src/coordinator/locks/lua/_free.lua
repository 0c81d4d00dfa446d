-- Giving one lock back: the grant item.mine, at item.at of its holders. Whoever includes this says whether to `forget` it.
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
  if item.held_shared then return write_shared(item) end
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
  if forget then
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

-- Ends the grant that item.mine is, tells of it, and calls whoever is next in line.
local function free(item)
  local first = give_back(item)
  remember(item, first)
  if whole then leave_indexes(item, first) end
  tell(item, 'released', args.agent, '","lock_id":"' .. args.lock_id .. '"}')
  if redis.call('EXISTS', item.queue) == 1 then
    learn(item)
    -- The next one has the lock before a release whose answer was lost can come again.
    if not forget then redis.call('HSET', item.fence, 'last_released', args.lock_id) end -- guard
    promote(item) -- guard
  end
end
