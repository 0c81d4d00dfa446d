-- The usual grant, written out: a task on one server, nobody there, nobody in line, no wish but the lease. Setting up the
-- functions and tables that every other case needs would cost more than the grant. What it writes is what they write;
-- a test runs both and compares. One who waited in line is not usual: it leaves a place behind.
-- @include _now.lua
if args.shape == 'tx' and args.lease_class == 'process' and args.hold_us == 0 and string.sub(args.wait, 1, 5) ~= 'again' then
  local call, lock, agent, lock_id = redis.call, KEYS[3], args.agent, args.lock_id
  local fence = lock .. const.fence
  local last = call('HMGET', fence, 'token', 'state', 'last_lock_id')
  local free = call('EXISTS', lock, lock .. const.queue) == 0
  if last[2] == 'held' then free = false end -- guard
  if last[3] == lock_id then free = false end -- guard
  if free then
    local before = tonumber(last[1]) or 0
    local us = now
    if us <= before then us = before + 1 end -- guard
    local token = string.format('%d', us)
    local expires = now + args.lease_us
    local expires_text = iso_time(expires)
    call('ZADD', const.registry, string.format('%d.%06d', expires / 1000000, expires % 1000000), lock) -- guard
    call('SADD', KEYS[1], lock) -- guard
    call('HSET', lock, 'holder_agent_id', agent, 'acquired_at', now_text, 'expires_at', expires_text, 'purpose', args.purpose,
      'heartbeat_count', '0', 'queue_length', '0', 'lock_id', lock_id, 'fencing_token', token)
    call('PEXPIRE', lock, string.format('%d', math.ceil(args.lease_us / 1000))) -- guard
    call('HSET', fence, 'token', token, 'state', 'held', 'last_holder', agent, 'last_lock_id', lock_id)
    if us - before > 86400000000 then call('EXPIRE', fence, 7776000) end -- guard
    call('PUBLISH', lock .. const.channel, 'acquired:' .. agent)
    call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:acquired', 'timestamp', now_text, 'payload',
      '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id
        .. '","fencing_token":"' .. token .. '"}', 'source', ctx.source)
    return 'GRANTED 0 ' .. now_text .. ' ' .. expires_text .. ' ' .. token
  end
end
