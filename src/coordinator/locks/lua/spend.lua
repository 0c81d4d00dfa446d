-- Count an attempt against an agent's limit, where the limit lives in another slot than the lock.
--   keys.rate
--   args.emission_us, args.burst
-- Outcome: 0, or the milliseconds to wait before the next attempt
-- @include ../../../redis/lua/_time.lua
local now = now_us()
local function whole_number(n)
  return string.format('%.0f', n)
end
-- @include _rate.lua
local wait_us = must_wait(keys.rate)
if wait_us then return math.ceil(wait_us / 1000) end
spend(keys.rate)
return 0
