-- The usual case of one request, before anything is set up that only others need. If the first in line asks in the same call, it
-- takes the lock here: as if its own call came right after this one.
-- @include _usual-release.lua
-- @include _usual-grant.lua
if args.shape == 'tx' and args.forget == 0 then
  local lock, agent, lock_id = KEYS[1], args.agent, args.lock_id
  local fence, queue, waiters = lock .. const.fence, lock .. const.queue, lock .. const.waiters
  local mine, head, what = usual_mine(lock, agent, lock_id), nil, nil
  local entry = mine and call('ZRANGE', queue, '0', '0')[1]
  if entry then
    -- As acquire.lua writes it; whatever else stands there is not usual.
    head, what = string.match(entry, '^{"agent_id":"([%w._-]+)","mode":"exclusive",.*,"lock_id":"([%w._-]+)"}$')
    local deadline = what and string.match(call('HGET', waiters, what) or '', '^(%d+)|')
    if not deadline or tonumber(deadline) <= now then mine = nil end -- the dead are passed over, one by one
  end
  if mine then
    call('DEL', lock)
    call('ZREM', const.registry, lock) -- guard
    if head then
      local kept = math.max(now - mine, 0)
      local usual = call('HGET', fence, 'hold_us') or kept
      call('HSET', fence, 'state', 'released', 'hold_us', format('%.0f', 0.8 * usual + 0.2 * kept)) -- guard
      call('HSET', fence, 'last_released', lock_id) -- guard
    else
      call('HSET', fence, 'state', 'released') -- guard
    end
    write_usual_release(lock, agent, lock_id)
    if not head then return 'RELEASED' end
    call('PUBLISH', lock .. const.channel, 'promoted:' .. head) -- guard
    call('XADD', const.events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:promoted', 'timestamp', now_text, 'payload',
      '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. head .. '"}', 'source', ctx.source)
    if what ~= args.next_id then return 'RELEASED' end -- guard
    local line = leave_usual_line(lock, queue, waiters, head, what, entry)
    return 'RELEASED ' .. usual_grant(lock, fence, tonumber(mine), head, what, args.next_lease_us, args.next_purpose, line)
  end
end
