-- All about locks at one moment; changes nothing.
-- Outcome: per lock, JSON: holders, waiters, fence, capacity; times are judged here, by Redis
-- @include _locks.lua
-- @include _holders.lua
-- @include _queue.lua

local function describe(item)
  read_fence(item)
  read_holders(item)
  local hold_us = redis.call('HGET', item.fence, 'hold_us')
  local lock = redis.call('HMGET', item.lock, 'purpose', 'heartbeat_count', 'max_tasks', 'active_tasks', 'queued_tasks', 'status', 'last_heartbeat')
  local view = { at = now_text, token = whole_number(item.token), state = item.state or 'free', holders = {}, waiters = {},
    shared = item.held_shared or false, last_holder = item.last_holder or nil, hold_us = hold_us or nil }
  for _, holder in ipairs(item.holders) do
    if not item.held_shared then holder.purpose, holder.heartbeat_count = lock[1] or '', tonumber(lock[2]) or 0 end
    holder.state = is_over(holder) and 'expired' or holder.expires_at <= now_text and 'grace' or 'live'
    table.insert(view.holders, holder)
  end
  if item.kind == 'a' then
    local leases = redis.call('ZRANGE', item.leases, 0, -1, 'WITHSCORES')
    for i = 1, #leases, 2 do
      local token = redis.call('HGET', item.fence, 'lease:' .. leases[i]) or '0'
      local ends = tonumber(leases[i + 1]) * 1000000
      table.insert(view.holders, { lock_id = leases[i], fencing_token = token, acquired_at = iso_time(tonumber(token)),
        expires_at = iso_time(ends), state = ends <= now and 'expired' or 'live' })
    end
    if item.limit then
      view.capacity = { max_tasks = item.limit, active_tasks = item.active, queued_tasks = tonumber(lock[5]) or 0,
        status = lock[6] or 'active', last_heartbeat = lock[7] or '' }
    end
  elseif #item.holders == 0 and item.state == 'held' then
    view.vanished = item.last_holder or ''
  end
  local line = redis.call('ZRANGE', item.queue, 0, -1)
  for _, entry in ipairs(line) do
    local parsed, waiter = pcall(cjson.decode, entry)
    if parsed and type(waiter) == 'table' and waiter.lock_id then
      local known = waiter_of(item, waiter.lock_id)
      local alive = known and not known.aborted and not known.told and known.deadline > now
      waiter.alive = alive or false
      waiter.since = known and known.since and whole_number(known.since) or '0'
      table.insert(view.waiters, waiter)
    end
  end
  return cjson.encode(view)
end

local views = {}
for n, item in ipairs(items) do views[n] = describe(item) end
return views
