-- Note when the sweeper should look at a lock. For a cluster, where its lists are in slots of their own, and for a lock that
-- cannot be looked at now.
--   keys.list                registry or waiting
--   args.lock, args.in_us
--   args.unless_there        1: leave an earlier note as it is
-- Outcome: OK
-- @include ../../../redis/lua/_time.lua
local at = string.format('%.6f', (now_us() + args.in_us) / 1000000)
if args.unless_there == 1 then
  redis.call('ZADD', keys.list, 'NX', at, args.lock)
else
  redis.call('ZADD', keys.list, at, args.lock)
end
return 'OK'
