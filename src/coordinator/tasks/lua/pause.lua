-- Pause all work, or a lane or type of it, or let it go on. While all is paused the public list stands aside, so that plain
-- clients find nothing either; while a type is, its tasks leave the list.
--   args.what     all, or a type
--   args.value    JSON of who, when, why, until when; empty: go on
-- Outcome: how many tasks the list shows
-- @include _ready.lua

local queue, offered = key.taskQueue(), key.offeredTasks()
if args.value ~= '' then redis.call('HSET', key.pauses(), args.what, args.value) else redis.call('HDEL', key.pauses(), args.what) end

-- What plain clients took from the list must not come back to it: it stays offered, for the reconcile to find.
local there = {}
for _, id in ipairs(public('LRANGE', queue, 0, -1)) do there[id] = true end
for _, id in ipairs(redis.call('ZRANGE', offered, 0, -1)) do
  if there[id] then redis.call('ZREM', offered, id) end
end
redis.call('DEL', queue)
redis.call('DEL', key.pausedQueue())
if is_paused('all') then
  for id in pairs(there) do redis.call('LPUSH', key.pausedQueue(), id) end
else
  local best = redis.call('ZRANGE', key.readyOrder(), 0, args.window - 1)
  for _, id in ipairs(best) do
    local lane = redis.call('HGET', key.taskRecord(id), 'lane')
    if not redis.call('ZSCORE', offered, id) and not is_paused(lane) then
      redis.call('LPUSH', queue, id)
      redis.call('ZADD', offered, whole_number(now), id)
      redis.call('PUBLISH', key.readyChannel(), lane)
    end
  end
end
return redis.call('LLEN', queue)
