-- Granting what is not held alone: a place among an agent's, and a lock that others read, too.
local function grant_place(item, token)
  enter_indexes(item, math.min(ends, first_lease(item) or ends))
  redis.call('ZADD', item.leases, seconds(ends), args.lock_id)
  redis.call('HSET', item.fence, 'lease:' .. args.lock_id, token)
  redis.call('HSET', item.lock, 'active_tasks', item.active + 1, 'last_heartbeat', now_text)
end

local function grant_shared(item, token)
  local first = ends
  for _, holder in ipairs(item.holders) do first = math.min(first, ends_us(holder)) end
  enter_indexes(item, first)
  item.holders[#item.holders + 1] = {
    agent_id = args.agent, acquired_at = now_text, expires_at = expires_text, lock_id = args.lock_id, fencing_token = token,
    lease_class = args.lease_class == 'agent' and 'agent' or nil, hold_until = hold_until,
    purpose = args.purpose ~= '' and args.purpose or nil,
  }
  write_shared(item)
end
