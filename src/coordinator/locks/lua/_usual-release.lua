-- The usual release, written out, as is the usual grant: a task on one server, held alone by the caller, nobody in line.
-- @include _now.lua
if args.shape == 'tx' and args.forget == 0 then
  local call, lock, agent, lock_id = redis.call, KEYS[3], args.agent, args.lock_id
  local held = call('HMGET', lock, 'lock_id', 'holder_agent_id', 'expires_at')
  local mine = held[1] == lock_id and call('EXISTS', lock .. const.queue) == 0
  if mine and held[2] ~= agent then mine = false end -- guard
  if mine and held[3] <= now_text then mine = false end -- guard
  if mine then
    call('DEL', lock)
    call('HSET', lock .. const.fence, 'state', 'released') -- guard
    call('ZREM', const.registry, lock) -- guard
    call('SREM', KEYS[1], lock) -- guard
    call('PUBLISH', lock .. const.channel, 'released:' .. agent)
    call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:released', 'timestamp', now_text, 'payload',
      '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '"}',
      'source', ctx.source)
    return 'RELEASED'
  end
end
