-- Tasks whose lease or whose time should be over by now, for the caller to look at, and when to look again.
--   args.limit
-- Outcome: seconds until the next one, or '' if nothing is worked on; the tasks
-- @include ../../locks/lua/_now.lua
local running = key.runningTasks()
local suspects = redis.call('ZRANGEBYSCORE', running, '-inf', string.format('%d', now), 'LIMIT', 0, args.limit)
local first = redis.call('ZRANGE', running, 0, 0, 'WITHSCORES')[2]
return { first and string.format('%.3f', math.max(0, (tonumber(first) - now) / 1000000)) or '', suspects }
