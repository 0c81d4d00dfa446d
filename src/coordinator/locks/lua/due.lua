-- Which locks the sweeper should look at by now, the longest overdue first.
--   keys.list      registry or waiting: lock keys by when to look
--   args.limit
-- Outcome: lock keys
-- @include ../../../redis/lua/_time.lua
return redis.call('ZRANGEBYSCORE', keys.list, '-inf', string.format('%.6f', now_us() / 1000000), 'LIMIT', 0, args.limit)
