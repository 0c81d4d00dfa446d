-- End what one agent left at a lock without a word: grants that are over, and places in line of a waiter that fell
-- silent. Tells of each ended grant exactly once, calls the next, and puts the lock's place in the sweeper's lists right.
--   args.agent        whose; the agent's index and waitfor are the ones declared
--   args.patience_us  how long a silent waiter counts as alive
-- Outcome: how many grants and how many waiters ended, and 1 if nothing is left of the lock to sweep, else 0
-- @include _locks.lua
-- @include _queue.lua

local item = items[1]
read(item)
local ended, kept = {}, {}
for _, holder in ipairs(item.holders) do
  local gone = holder.agent_id == args.agent and is_over(holder) -- guard
  table.insert(gone and ended or kept, holder)
end
-- The key itself may have ended first; the fence still says that it was held, and by whom.
local vanished = item.kind ~= 'a' and #item.holders == 0 and item.state == 'held' and item.last_holder == args.agent
if vanished then ended[1] = { lock_id = item.last_lock_id, fencing_token = whole_number(item.token) } end

local lapsed = {}
if item.kind == 'a' then
  lapsed = redis.call('ZRANGEBYSCORE', item.leases, '-inf', seconds(now))
  for _, lock_id in ipairs(lapsed) do
    ended[#ended + 1] = { lock_id = lock_id, fencing_token = redis.call('HGET', item.fence, 'lease:' .. lock_id) or '0' }
  end
end

walk(item, function() end)
local words = redis.call('HGETALL', item.waiters)

item.holders = kept
if #lapsed > 0 then
  redis.call('ZREM', item.leases, unpack(lapsed))
  for _, lock_id in ipairs(lapsed) do redis.call('HDEL', item.fence, 'lease:' .. lock_id) end
  if item.limit then redis.call('HSET', item.lock, 'active_tasks', item.active) end
elseif #ended > 0 then
  write_shared(item) -- guard
  if #kept == 0 then redis.call('HSET', item.fence, 'state', 'expired') end -- guard
end
local dead = #item.dead
bury(item)
for i = 1, #words, 2 do
  local until_us = string.match(words[i + 1], '^!(%d+)')
  if until_us and tonumber(until_us) <= now then redis.call('HDEL', item.waiters, words[i]) end
end
local length = note_length(item)

local first
if item.kind == 'a' then
  local lease = redis.call('ZRANGE', item.leases, 0, 0, 'WITHSCORES')
  first = lease[2] and tonumber(lease[2]) * 1000000
else
  for _, holder in ipairs(kept) do first = math.min(first or ends_us(holder), ends_us(holder)) end
end
local left = redis.call('EXISTS', item.waiters) == 1

if whole then
  local mine, waits = false, false
  for _, holder in ipairs(kept) do mine = mine or holder.agent_id == args.agent end
  if not mine then redis.call('SREM', index, item.lock) end -- guard
  walk(item, function(waiter) waits = waits or waiter.agent_id == args.agent end)
  if not waits then redis.call('SREM', waitfor, item.lock) end -- guard
  if first then redis.call('ZADD', registry, seconds(first), item.lock) -- guard
  else
    redis.call('ZREM', registry, item.lock) -- guard
    if item.type_index then redis.call('SREM', item.type_index, item.lock) end -- guard
  end
  -- Somebody may fall silent again within a waiter's patience.
  if left then redis.call('ZADD', waiting, seconds(now + args.patience_us), item.lock) -- guard
  else redis.call('ZREM', waiting, item.lock) end
end
for _, grant in ipairs(ended) do
  tell(item, 'expired', args.agent, ',"lock_id":"' .. grant.lock_id .. '","fencing_token":"' .. grant.fencing_token .. '"') -- guard
end
if length > 0 and (#ended > 0 or dead > 0) then promote(item) end -- guard
return with_told({ #ended, dead, (first or left) and 0 or 1 })
