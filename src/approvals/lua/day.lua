-- How one reviewer is doing. The counts of today are those of this UTC day: what an earlier day left there is gone with the first look.
--   args.person
--   args.days      how many days to tell of, this one included
-- Outcome: { names and values of the stats }, then { day, approved, rejected } for each day, the newest first
-- @include ../../redis/lua/_time.lua
local now = now_us()
local stats, today = key.userApprovalStats(args.person), string.sub(iso_time(now), 1, 10)
local function of(day)
  local v = redis.call('HMGET', key.userApprovalDay(args.person, day), 'approved', 'rejected')
  return { day, tonumber(v[1]) or 0, tonumber(v[2]) or 0 }
end
if redis.call('EXISTS', stats) == 1 and redis.call('HGET', stats, 'day') ~= today then
  local counts = of(today)
  redis.call('HSET', stats, 'approved_today', counts[2], 'rejected_today', counts[3], 'day', today)
end
local reply = { redis.call('HGETALL', stats) }
for back = 0, args.days - 1 do reply[#reply + 1] = of(string.sub(iso_time(now - back * 86400000000), 1, 10)) end
return reply
