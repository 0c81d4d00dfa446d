-- The usual grant, written out: a task on one server, nobody there, nobody in line, no wish but the lease. Setting up the
-- functions and tables that every other case needs would cost more than the grant. What it writes is what they write.
-- @include _now.lua
if args.shape == 'tx' and args.publish == 'PUBLISH' and args.wait == '' and args.lease_class == 'process' and args.hold_us == 0 then
  local registry, stream, index, lock, queue, fence, channel = KEYS[1], KEYS[3], KEYS[4], KEYS[6], KEYS[7], KEYS[9], KEYS[10]
  local last = redis.call('HMGET', fence, 'token', 'state', 'last_lock_id')
  local free = redis.call('EXISTS', lock, queue) == 0
  if last[2] == 'held' then free = false end -- guard
  if last[3] == args.lock_id then free = false end -- guard
  if free then
    local before = tonumber(last[1]) or 0
    local us = now
    if us <= before then us = before + 1 end -- guard
    local token = string.format('%.0f', us)
    local expires_text = iso_time(now + args.lease_us)
    redis.call('ZADD', registry, string.format('%.6f', (now + args.lease_us) / 1000000), lock) -- guard
    redis.call('SADD', index, lock) -- guard
    redis.call('HSET', lock, 'holder_agent_id', args.agent, 'acquired_at', now_text, 'expires_at', expires_text, 'purpose', args.purpose,
      'heartbeat_count', '0', 'queue_length', '0', 'lock_id', args.lock_id, 'fencing_token', token)
    redis.call('PEXPIRE', lock, string.format('%.0f', math.ceil(args.lease_us / 1000))) -- guard
    redis.call('HSET', fence, 'token', token, 'state', 'held', 'last_holder', args.agent, 'last_lock_id', args.lock_id)
    if us - before > 86400000000 then redis.call('EXPIRE', fence, 7776000) end -- guard
    redis.call('PUBLISH', channel, 'acquired:' .. args.agent)
    redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:acquired', 'timestamp', now_text, 'payload',
      '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. args.agent .. '","lock_id":"' .. args.lock_id
        .. '","fencing_token":"' .. token .. '"}', 'source', ctx.source)
    return { 'GRANTED', 0, now_text, expires_text, token }
  end
end
