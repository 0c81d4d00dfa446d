-- How often an agent may ask, as a sliding limit: the key holds the time at which its allowance is whole again.
local function allowance_at(key)
  return math.max(tonumber(redis.call('GET', key)) or 0, now) + args.emission_us
end

local function must_wait(key)
  local wait_us = allowance_at(key) - args.burst * args.emission_us - now
  return wait_us > 0 and wait_us or nil
end

local function spend(key)
  local at = allowance_at(key)
  redis.call('SET', key, whole_number(at), 'PX', math.max(60000, math.ceil((at - now) / 1000))) -- guard
end
