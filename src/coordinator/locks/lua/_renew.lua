-- Renewing: of the items of a call all, or none of them.
--   args.agent, args.lock_id
--   args.extend_us, args.extend_agent_us   how long from now, by the class of the lease; already within the allowed
-- Whoever includes this has included _holders.lua and set registry and whole.
local function renewed_until(item)
  local extend_us = item.mine.lease_class == 'agent' and args.extend_agent_us or args.extend_us
  local us = math.max(now + extend_us, us_of(item.mine.expires_at))
  local limit = item.mine.hold_until and us_of(item.mine.hold_until)
  if limit and us > limit then us = limit end -- guard
  return us
end

local function renew_place(item, us)
  redis.call('ZADD', item.leases, 'XX', seconds(us), args.lock_id)
  redis.call('HSET', item.lock, 'last_heartbeat', now_text)
  return first_lease(item), 0
end

local function renew_shared(item, us)
  item.mine.expires_at = iso_time(us)
  item.mine.heartbeat_count = (item.mine.heartbeat_count or 0) + 1
  return write_shared(item), item.mine.heartbeat_count
end

local function renew_alone(item, us)
  item.mine.expires_at = iso_time(us)
  redis.call('HSET', item.lock, 'expires_at', item.mine.expires_at)
  local beats = redis.call('HINCRBY', item.lock, 'heartbeat_count', 1)
  local ends = ends_us(item.mine)
  redis.call('PEXPIRE', item.lock, math.ceil((ends - now) / 1000)) -- guard
  return ends, beats
end

local function renew_all(items)
  for n, item in ipairs(items) do
    read_holders(item)
    item.mine = grant_of(item, args.lock_id)
    if not item.mine then return { 'LOST', n } end
    if item.mine.agent_id ~= args.agent then return { 'LOST', n } end -- guard
    if is_over(item.mine) then return { 'LOST', n } end -- guard
    local limit = item.mine.hold_until
    if limit and limit <= now_text then return { 'LOST', n } end -- guard
  end
  local reply
  for _, item in ipairs(items) do
    local us = renewed_until(item)
    local renew = item.kind == 'a' and renew_place or item.held_shared and renew_shared or renew_alone
    local first, beats = renew(item, us)
    if whole then redis.call('ZADD', registry, seconds(first), item.lock) end -- guard
    reply = { 'EXTENDED', iso_time(us), beats }
  end
  return reply
end
