-- What the clock brings: back-offs that are over go back to the queue, and pauses that are over end.
--   args.limit
-- Outcome: the tasks that go back
-- @include _ready.lua

local pauses = redis.call('HGETALL', key.pauses())
for at = 1, #pauses, 2 do
  local pause = cjson.decode(pauses[at + 1])
  if is_over_at(pause) then
    redis.call('HDEL', key.pauses(), pauses[at])
    if pause.mark then redis.call('ZREM', key.pausedResources(), pause.mark .. '\0' .. pauses[at]) end
  end
end
local released = redis.call('ZRANGEBYSCORE', key.delayedTasks(), '-inf', seconds(now), 'LIMIT', 0, args.limit)
for _, id in ipairs(released) do
  redis.call('ZREM', key.delayedTasks(), id)
  local t = load(id)
  if t and t.status == 'blocked' then settle(t) end
end
if #released > 0 then write_progress() end
return released
