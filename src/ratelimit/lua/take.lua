-- One call against a limit that slides (the generic cell rate algorithm): the key holds the moment at which the calls so
-- far are paid for; a call is admitted while that moment is not further ahead than a whole burst.
--   keys.limit       microseconds since 1970 at which all calls are paid for; expires then
--   args.interval_us what one call costs
--   args.burst       how many calls may come at once
-- Outcomes: { 'ADMITTED', calls left } · { 'LIMITED', microseconds until the next one }
-- @include ../../redis/lua/_time.lua
local now = now_us()
local window = args.interval_us * args.burst
-- After the clock was set back, the stored moment may lie hours ahead: nobody waits longer than a burst takes.
local paid = math.min(math.max(tonumber(redis.call('GET', keys.limit) or now) or now, now), now + window)
local next_paid = paid + args.interval_us
if next_paid - now > window then
  return { 'LIMITED', string.format('%.0f', math.ceil(next_paid - window - now)) }
end
redis.call('SET', keys.limit, string.format('%.0f', next_paid), 'PX', math.ceil((next_paid - now) / 1000))
return { 'ADMITTED', string.format('%.0f', math.floor((window - (next_paid - now)) / args.interval_us)) }
