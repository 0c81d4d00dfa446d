-- Say how much an agent may do at once, and whether it takes new work. Places that are taken stay taken.
--   args.max_tasks   0: as it is
--   args.status      empty: as it is (a new agent is active)
-- Outcomes: SET · UNREGISTERED (nothing to change: the agent has no limit yet)
-- @include _locks.lua
-- @include _holders.lua
-- @include _queue.lua

local item = items[1]
read_holders(item)
if not item.limit and args.max_tasks == 0 then return { 'UNREGISTERED' } end
item.limit = args.max_tasks > 0 and args.max_tasks or item.limit
item.status = args.status ~= '' and args.status or item.status or 'active'
redis.call('HSET', item.lock, 'max_tasks', item.limit, 'active_tasks', item.active,
  'queued_tasks', redis.call('ZCARD', item.queue), 'last_heartbeat', now_text, 'status', item.status)
promote(item)
return with_told({ 'SET' })
