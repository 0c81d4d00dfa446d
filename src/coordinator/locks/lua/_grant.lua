-- Granting a lock: from when to when, under which token, and what is written with it.
local expires, hold_until = now + args.lease_us, nil
if args.hold_us > 0 then
  hold_until = iso_time(now + args.hold_us)
  if args.hold_us < args.lease_us then expires = now + args.hold_us end -- guard
end
local expires_text = iso_time(expires)
local ends = args.lease_class == 'agent' and expires + grace_us or expires

-- Before the lock: if anything fails between, they name a lock too many, which the sweeper finds, never one too few.
local function enter_indexes(item, first)
  if not whole then return end
  redis.call('ZADD', registry, seconds(first), item.lock) -- guard
  if item.kind ~= 'a' then redis.call('SADD', index, item.lock) end -- guard
  if item.type_index then redis.call('SADD', item.type_index, item.lock) end -- guard
end

local function grant_alone(item, token)
  enter_indexes(item, ends)
  if item.upgrade then
    redis.call('DEL', item.lock)
    redis.call('HDEL', item.fence, 'sharing') -- guard
  end
  redis.call('HSET', item.lock, item.kind == 't' and 'holder_agent_id' or 'exclusive_holder', args.agent,
    'acquired_at', now_text, 'expires_at', expires_text, 'purpose', args.purpose, 'heartbeat_count', '0', 'queue_length', '0',
    'lock_id', args.lock_id, 'fencing_token', token)
  redis.call('PEXPIRE', item.lock, whole_number(math.ceil((ends - now) / 1000))) -- guard
  if item.kind == 'r' then redis.call('HSET', item.lock, 'mode', 'exclusive') end
  if args.lease_class == 'agent' then redis.call('HSET', item.lock, 'lease_class', 'agent') end -- guard
  if hold_until then redis.call('HSET', item.lock, 'hold_until', hold_until) end -- guard
end

-- What a grant leaves beside the lock. The token rises even if the clock went back or the last one was in this µs.
local function seal(item, us, token)
  redis.call('HSET', item.fence, 'token', token, 'state', 'held', 'last_holder', args.agent, 'last_lock_id', args.lock_id)
  -- A day of the ninety is little enough not to be renewed with every grant.
  if item.kind == 't' and us - item.token > 86400000000 then redis.call('EXPIRE', item.fence, 7776000) end
  tell(item, 'acquired', args.agent, '","lock_id":"' .. args.lock_id .. '","fencing_token":"' .. token .. '"}')
end

local function next_token(item)
  if now <= item.token then return item.token + 1 end -- guard
  return now
end
