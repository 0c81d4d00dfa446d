-- The usual release, written out, as is the usual grant: a task on one server, held alone by the caller, nobody in line.
-- @include _now.lua
if args.shape == 'tx' and args.publish == 'PUBLISH' and args.forget == 0 then
  local registry, stream, index, lock, queue, fence, channel = KEYS[1], KEYS[3], KEYS[4], KEYS[6], KEYS[7], KEYS[9], KEYS[10]
  local held = redis.call('HMGET', lock, 'lock_id', 'holder_agent_id', 'expires_at')
  local mine = held[1] == args.lock_id and redis.call('EXISTS', queue) == 0
  if mine and held[2] ~= args.agent then mine = false end -- guard
  if mine and held[3] <= now_text then mine = false end -- guard
  if mine then
    redis.call('DEL', lock)
    redis.call('HSET', fence, 'state', 'released') -- guard
    redis.call('ZREM', registry, lock) -- guard
    redis.call('SREM', index, lock) -- guard
    redis.call('PUBLISH', channel, 'released:' .. args.agent)
    redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:released', 'timestamp', now_text, 'payload',
      '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. args.agent .. '","lock_id":"' .. args.lock_id .. '"}',
      'source', ctx.source)
    return { 'RELEASED' }
  end
end
