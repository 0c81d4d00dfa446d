-- What is due, and the time, by the Redis server's clock.
--   keys.queue   members by due time in seconds
--   args.limit   at most so many
-- Outcome: { now in seconds, { member, … } }
-- @include ../../redis/lua/_time.lua
local now = string.format('%.6f', now_us() / 1000000)
return { now, redis.call('ZRANGEBYSCORE', keys.queue, '-inf', now, 'LIMIT', 0, args.limit) }
