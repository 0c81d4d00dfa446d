-- End what one agent left at a lock without a word: grants that are over, and places in line of waiters that fell
-- silent. Tells of each ended grant exactly once, calls the next, and puts the lock's place in the sweeper's lists right.
--   args.agent        whose grants; the agent's index and waitfor are the ones declared
--   args.patience_us  how long a silent waiter counts as alive
-- Outcome: how many grants and how many waiters ended; whether anyone still stands in line (1 or 0)
-- @include _locks.lua
-- @include _holders.lua
-- @include _queue.lua

local item = items[1]
read_fence(item)
read_holders(item)
local ended, kept = {}, {}
for _, holder in ipairs(item.holders) do
  local gone = is_over(holder)
  if holder.agent_id ~= args.agent then gone = false end -- guard
  table.insert(gone and ended or kept, holder)
end
local unseen = {}
for _, holder in ipairs(vanished(item)) do table.insert(holder.agent_id == args.agent and ended or unseen, holder) end
local lapsed = item.kind == 'a' and redis.call('ZRANGEBYSCORE', item.leases, '-inf', seconds(now)) or {}
for _, lock_id in ipairs(lapsed) do
  ended[#ended + 1] = { lock_id = lock_id, fencing_token = redis.call('HGET', item.fence, 'lease:' .. lock_id) or '0' }
end
local waits = false
walk(item, function(waiter) waits = waits or waiter.agent_id == args.agent end)
local dead = #item.dead

item.holders = kept
for _, lock_id in ipairs(lapsed) do
  redis.call('ZREM', item.leases, lock_id)
  redis.call('HDEL', item.fence, 'lease:' .. lock_id)
end
if #lapsed > 0 and item.limit then redis.call('HSET', item.lock, 'active_tasks', item.active) end
if #ended > 0 and item.kind ~= 'a' then
  write_shared(item)
  if #unseen > 0 then note_sharing(item, unseen) end -- guard
  if #kept + #unseen == 0 then redis.call('HSET', item.fence, 'state', 'expired') end -- guard
end
bury(item)
local words = redis.call('HGETALL', item.waiters)
for i = 1, #words, 2 do
  local until_us = string.match(words[i + 1], '^[!?](%d+)')
  if until_us and tonumber(until_us) <= now then redis.call('HDEL', item.waiters, words[i]) end -- guard
end
note_length(item)

local first = item.kind == 'a' and first_lease(item) or nil
if #unseen > 0 then first = now end -- guard
local holds = false
for _, holder in ipairs(kept) do
  first = math.min(first or ends_us(holder), ends_us(holder))
  holds = holds or holder.agent_id == args.agent
end
local line = redis.call('EXISTS', item.waiters)
if whole then
  if not holds then redis.call('SREM', index, item.lock) end -- guard
  if not waits then redis.call('SREM', waitfor, item.lock) end -- guard
  if first then redis.call('ZADD', registry, seconds(first), item.lock) end -- guard
  if not first then redis.call('ZREM', registry, item.lock) end -- guard
  if not first and item.type_index then redis.call('SREM', item.type_index, item.lock) end -- guard
  -- Whoever still stands there may fall silent, too: look again then.
  if line == 1 then redis.call('ZADD', waiting, seconds(now + args.patience_us), item.lock) end -- guard
end
for _, grant in ipairs(ended) do
  tell(item, 'expired', args.agent, '","lock_id":"' .. grant.lock_id .. '","fencing_token":"' .. grant.fencing_token .. '"}')
end
if #ended > 0 or dead > 0 then promote(item) end -- guard
return with_told({ #ended, dead, line })
