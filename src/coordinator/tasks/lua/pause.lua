-- Pause all work, or a type of it, or what works on one thing; or let it go on. From here on nothing of it is handed out, and the
-- public list shows none of it, so that plain clients find nothing either. The tasks themselves follow slice by slice: pauses.ts.
--   args.what     all, a type, or resource:TYPE:ID
--   args.value    JSON of who, when, why, until when; of a resource also its mark; empty: go on
--   args.mark     of a resource: where it stands among the marks, see collisions.ts; else empty
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
for _, id in ipairs(wanted_list()) do
  if not redis.call('ZSCORE', offered, id) then
    redis.call('LPUSH', queue, id)
    redis.call('ZADD', offered, whole_number(now), id)
  end
end
