-- The usual releases, written out as are the usual grants: a task on one server, held alone by the caller, with nobody in
-- line, or with one at its head who is alive and is called.
-- @include _now.lua
if args.shape == 'tx' and args.forget == 0 then
  local call, lock, agent, lock_id = redis.call, KEYS[3], args.agent, args.lock_id
  local fence, queue = lock .. const.fence, lock .. const.queue
  local held = call('HMGET', lock, 'lock_id', 'holder_agent_id', 'expires_at', 'fencing_token')
  local mine, head = held[1] == lock_id, nil
  if mine and held[2] ~= agent then mine = false end -- guard
  if mine and held[3] <= now_text then mine = false end -- guard
  local entry = mine and call('ZRANGE', queue, 0, 0)[1]
  if entry then
    -- As acquire.lua writes it; whatever else stands there is not usual.
    local who, what = string.match(entry, '^{"agent_id":"([%w._-]+)","mode":"exclusive",.*,"lock_id":"([%w._-]+)"}$')
    local deadline = what and string.match(call('HGET', lock .. const.waiters, what) or '', '^(%d+)|')
    mine = deadline and tonumber(deadline) > now -- the dead are passed over, one by one
    head = who
  end
  if mine then
    call('DEL', lock)
    if head then
      local kept = now - held[4]
      if kept < 0 then kept = 0 end
      local usual = call('HGET', fence, 'hold_us') or kept
      call('HSET', fence, 'state', 'released', 'last_lock_id', lock_id, 'hold_us', string.format('%.0f', 0.8 * usual + 0.2 * kept)) -- guard
    else
      call('HSET', fence, 'state', 'released') -- guard
    end
    call('ZREM', const.registry, lock) -- guard
    call('SREM', KEYS[1], lock) -- guard
    local channel, source = lock .. const.channel, ctx.source
    local named = '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"'
    call('PUBLISH', channel, 'released:' .. agent)
    call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:released', 'timestamp', now_text, 'payload',
      named .. agent .. '","lock_id":"' .. lock_id .. '"}', 'source', source)
    if head then
      call('PUBLISH', channel, 'promoted:' .. head) -- guard
      call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:promoted', 'timestamp', now_text, 'payload',
        named .. head .. '"}', 'source', source)
    end
    return 'RELEASED'
  end
end
