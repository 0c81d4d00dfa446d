-- Tasks whose lease or whose time should be over by now, for the caller to look at, and when to look again.
--   args.limit
--   args.looks    1: the caller looks after leases, and says so; 0: it only wants to know
-- Outcome: seconds until the next one, or '' if nothing is worked on; the tasks; seconds since anybody looked after leases
-- @include ../../locks/lua/_now.lua
local NOTED_EVERY_US = 5000000
local running, looked_at = key.runningTasks(), key.leasesLookedAt()
local suspects = redis.call('ZRANGEBYSCORE', running, '-inf', string.format('%d', now), 'LIMIT', 0, args.limit)
local first = redis.call('ZRANGE', running, 0, 0, 'WITHSCORES')[2]
local blind = now - (tonumber(redis.call('GET', looked_at)) or now)
if args.looks == 1 and (blind < 0 or blind >= NOTED_EVERY_US or redis.call('EXISTS', looked_at) == 0) then
  redis.call('SET', looked_at, string.format('%d', now))
end
return { first and string.format('%.3f', math.max(0, (tonumber(first) - now) / 1000000)) or '', suspects,
  string.format('%.3f', math.max(0, blind) / 1000000) }
