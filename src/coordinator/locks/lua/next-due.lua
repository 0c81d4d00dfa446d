-- How long until the sweeper should look at a lock.
--   keys.list      registry or waiting: lock keys by when to look
-- Outcome: seconds, or nothing
-- @include ../../../redis/lua/_time.lua
local first = redis.call('ZRANGE', keys.list, 0, 0, 'WITHSCORES')[2]
return first and string.format('%.6f', tonumber(first) - now_us() / 1000000)
