-- The usual grants of a task on one server, written out: nobody there and nobody in line, or the first in line, which was
-- called, comes for it. No wish but the lease. Setting up the functions and tables that every other case needs would cost
-- more than the grant. What it writes is what they write; a test runs both and compares.
-- @include _now.lua
if args.shape == 'tx' and args.lease_class == 'process' and args.hold_us == 0 then
  local call, lock, agent, lock_id = redis.call, KEYS[3], args.agent, args.lock_id
  local fence, queue, waiters = lock .. const.fence, lock .. const.queue, lock .. const.waiters
  local last = call('HMGET', fence, 'token', 'state', 'last_lock_id')
  local free, entry = true, nil
  if last[2] == 'held' then free = false end -- guard
  if last[3] == lock_id then free = false end -- guard
  if not free then
    -- Held, or its key ended unseen, or this request had its grant: not usual.
  elseif string.sub(args.wait, 1, 5) == 'again' then
    entry = string.match(call('HGET', waiters, lock_id) or '', '^%d+|%d+|(.*)$')
    free = entry and call('ZRANGE', queue, 0, 0)[1] == entry and call('EXISTS', lock) == 0
  else
    free = call('EXISTS', lock, queue) == 0
  end
  if free then
    local before = tonumber(last[1]) or 0
    local us = now
    if us <= before then us = before + 1 end -- guard
    local token = string.format('%d', us)
    local expires = now + args.lease_us
    local expires_text = iso_time(expires)
    local line = '0'
    if entry then
      call('ZREM', queue, entry) -- guard
      call('HDEL', waiters, lock_id) -- guard
      call('SREM', KEYS[2], lock) -- guard
      line = call('ZCARD', queue)
      if call('EXISTS', waiters) == 0 then call('ZREM', const.waiting, lock) end -- guard
    end
    call('ZADD', const.registry, string.format('%d.%06d', expires / 1000000, expires % 1000000), lock) -- guard
    call('SADD', KEYS[1], lock) -- guard
    call('HSET', lock, 'holder_agent_id', agent, 'acquired_at', now_text, 'expires_at', expires_text, 'purpose', args.purpose,
      'heartbeat_count', '0', 'queue_length', line, 'lock_id', lock_id, 'fencing_token', token)
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
