-- Bring a planned job forward, never back. One that is under way already is not in the plan.
--   keys.scheduled
--   args.member, args.in_seconds   from now
-- @include ../../redis/lua/_time.lua
local due = string.format('%.6f', now_us() / 1000000 + args.in_seconds)
return redis.call('ZADD', keys.scheduled, 'XX', 'LT', due, args.member)
