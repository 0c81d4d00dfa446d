-- Plan a job; one that is planned already keeps its time.
--   keys.scheduled
--   args.member        JSON
--   args.in_seconds    from now
-- Outcome: 1 if it is new
-- @include ../../redis/lua/_time.lua
local due = string.format('%.6f', now_us() / 1000000 + args.in_seconds)
return redis.call('ZADD', keys.scheduled, 'NX', due, args.member)
