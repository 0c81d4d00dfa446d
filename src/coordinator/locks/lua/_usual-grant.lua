-- The usual grants of a task on one server, written out: nobody there and nobody in line, or the first in line, which was
-- called, comes for it. No wish but the lease. Setting up the functions and tables that every other case needs would cost
-- more than the grant. What it writes is what they write; a test runs both and compares.
-- @include _now.lua
local call, format = redis.call, string.format

-- The token of the last grant, or nil: the lock is held, or its key ended unseen, or this very request had its grant.
local function token_before(fence, lock_id)
  local last = redis.pcall('HMGET', fence, 'token', 'state', 'last_lock_id', 'last_released')
  if last.err then return nil end -- guard
  if last[2] == 'held' then return nil end -- guard
  if last[3] == lock_id then return nil end -- guard
  if last[4] == lock_id then return nil end -- guard
  return last[1] and tonumber(last[1]) or 0
end

-- When a lease ends: for people, for the registry, and in milliseconds from now.
local function usual_lease(us)
  local expires = now + us
  return iso_time(expires), format('%d.%06d', expires / 1000000, expires % 1000000), format('%d', math.ceil(us / 1000))
end

-- Before this the lock is in the registry and in the agent's index. Answers the token.
local function write_usual_grant(lock, fence, before, agent, lock_id, purpose, expires_text, ttl, line)
  local us = now
  if us <= before then us = before + 1 end -- guard
  local token = format('%d', us)
  call('HSET', lock, 'holder_agent_id', agent, 'acquired_at', now_text, 'expires_at', expires_text, 'purpose', purpose,
    'heartbeat_count', '0', 'queue_length', line, 'lock_id', lock_id, 'fencing_token', token)
  call('PEXPIRE', lock, ttl) -- guard
  call('HSET', fence, 'token', token, 'state', 'held', 'last_holder', agent, 'last_lock_id', lock_id)
  if us - before > 86400000000 then call('EXPIRE', fence, '7776000') end -- guard
  call('PUBLISH', lock .. const.channel, 'acquired:' .. agent)
  call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:acquired', 'timestamp', now_text, 'payload',
    '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '","fencing_token":"'
      .. token .. '"}', 'source', ctx.source)
  return token
end

-- The first in line comes out of it. Answers how many are left.
local function leave_usual_line(lock, queue, waiters, agent, lock_id, entry)
  call('ZREM', queue, entry) -- guard
  call('HDEL', waiters, lock_id) -- guard
  call('SREM', key.waitFor(agent), lock) -- guard
  local line = call('ZCARD', queue)
  if line == 0 and call('EXISTS', waiters) == 0 then call('ZREM', const.waiting, lock) end -- guard
  return line
end

-- One grant by itself. Answers as acquire.lua does.
local function usual_grant(lock, fence, before, agent, lock_id, lease_us, purpose, line)
  local expires_text, score, ttl = usual_lease(lease_us)
  call('ZADD', const.registry, score, lock) -- guard
  call('SADD', key.agentLocks(agent), lock) -- guard
  local token = write_usual_grant(lock, fence, before, agent, lock_id, purpose, expires_text, ttl, line)
  return 'GRANTED 0 ' .. now_text .. ' ' .. expires_text .. ' ' .. token
end
