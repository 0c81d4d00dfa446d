-- Pause all work, or a type of it, or what works on one thing; or let it go on. While all is paused the public list stands aside, so
-- that plain clients find nothing either; while a part is, its tasks leave the list.
--   args.what     all, a type, or resource:TYPE:ID
--   args.value    JSON of who, when, why, until when; of a resource also its mark; empty: go on
--   args.mark     of a resource: where it stands among the marks, see collisions.ts; else empty
-- Outcome: how many tasks the list shows
-- @include _ready.lua

local queue, offered = key.taskQueue(), key.offeredTasks()
if args.value ~= '' then redis.call('HSET', key.pauses(), args.what, args.value) else redis.call('HDEL', key.pauses(), args.what) end
if args.mark ~= '' then
  local member = args.mark .. '\0' .. args.what
  if args.value ~= '' then redis.call('ZADD', key.pausedResources(), 0, member) else redis.call('ZREM', key.pausedResources(), member) end
end

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
  for _, id in ipairs(wanted_list()) do
    if not redis.call('ZSCORE', offered, id) then
      redis.call('LPUSH', queue, id)
      redis.call('ZADD', offered, whole_number(now), id)
      redis.call('PUBLISH', key.readyChannel(), redis.call('HGET', key.taskRecord(id), 'lane'))
    end
  end
end
return redis.call('LLEN', queue)
