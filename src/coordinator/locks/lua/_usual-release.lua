-- The usual releases, written out as are the usual grants: a task on one server, held alone by the caller, with nobody in
-- line, or with one at its head who is alive and is called.
-- @include _now.lua
local call, format = redis.call, string.format

-- The token of the grant, if it is the caller's and not over; else nil.
local function usual_mine(lock, agent, lock_id)
  local held = redis.pcall('HMGET', lock, 'lock_id', 'holder_agent_id', 'expires_at', 'fencing_token')
  if held[1] ~= lock_id then return nil end -- guard
  if held[2] ~= agent then return nil end -- guard
  if held[3] <= now_text then return nil end -- guard
  return held[4]
end

-- Before this the lock's key and what the registry has of it are gone.
local function write_usual_release(lock, agent, lock_id)
  call('SREM', key.agentLocks(agent), lock) -- guard
  call('PUBLISH', lock .. const.channel, 'released:' .. agent)
  call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:released', 'timestamp', now_text, 'payload',
    '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '"}', 'source', ctx.source)
end
