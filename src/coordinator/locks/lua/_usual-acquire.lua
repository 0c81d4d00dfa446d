-- The usual case of one request, before anything is set up that only others need.
-- @include _usual-grant.lua
if args.shape == 'tx' and args.lease_class == 'process' and args.hold_us == 0 then
  local lock, agent, lock_id = KEYS[1], args.agent, args.lock_id
  local fence, queue = lock .. const.fence, lock .. const.queue
  local before, line = token_before(fence, lock_id), '0'
  if not before then
    -- Not usual.
  elseif string.sub(args.wait, 1, 5) == 'again' then
    local waiters = lock .. const.waiters
    local entry = string.match(call('HGET', waiters, lock_id) or '', '^%d+|%d+|(.*)$')
    if entry and string.find(entry, '{"agent_id":"' .. agent .. '",', 1, true) ~= 1 then entry = nil end -- guard
    if entry and call('ZRANGE', queue, '0', '0')[1] == entry and call('EXISTS', lock) == 0 then
      line = leave_usual_line(lock, queue, waiters, agent, lock_id, entry)
    else
      before = nil
    end
  elseif call('EXISTS', lock, queue) > 0 then
    before = nil
  end
  if before then return usual_grant(lock, fence, before, agent, lock_id, args.lease_us, args.purpose, line) end
end
