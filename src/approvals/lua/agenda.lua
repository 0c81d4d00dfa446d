-- What the clock has to do.
--   keys.queue, keys.reminders    open requests by when they are due, and by when to remind of them, in seconds
--   args.limit                    at most so many of each
-- Outcome: { UTC day, seconds until something is to do or '', { due… }, { to remind of… } }
-- @include ../../redis/lua/_time.lua
local now = now_us()
local until_now = string.format('%.6f', now / 1000000)
local nearest
for _, queue in ipairs({ keys.queue, keys.reminders }) do
  local first = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
  if first then nearest = math.min(nearest or tonumber(first), tonumber(first)) end
end
return {
  string.sub(iso_time(now), 1, 10),
  nearest and string.format('%.6f', nearest - now / 1000000) or '',
  redis.call('ZRANGEBYSCORE', keys.queue, '-inf', until_now, 'LIMIT', 0, args.limit),
  redis.call('ZRANGEBYSCORE', keys.reminders, '-inf', until_now, 'LIMIT', 0, args.limit),
}
