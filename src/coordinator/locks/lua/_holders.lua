-- Who holds a lock, alone, shared or as one of an agent's places, in one form; and until when.
-- The text that iso_time() makes, back to µs.
local function us_of(text)
  local y, mo, d, h, mi, s = string.match(text, '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$')
  if not y then return now end
  y, mo = tonumber(y), tonumber(mo)
  if mo <= 2 then y, mo = y - 1, mo + 12 end
  local days = 365 * y + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400)
    + math.floor((153 * (mo - 3) + 2) / 5) + tonumber(d) - 1 - 719468
  return math.floor(((days * 24 + tonumber(h)) * 60 + tonumber(mi)) * 60000000 + tonumber(s) * 1000000 + 0.5)
end

-- A lease is over at its end, not after it. Texts of one form compare as the times they name.
-- In the grace an agent's own beat may revive it; nobody else gets the lock before that is over, too.
local function is_over(holder)
  if holder.expires_at > now_text then return false end
  return holder.lease_class ~= 'agent' or us_of(holder.expires_at) + grace_us <= now
end

-- From when on somebody else may have it.
local function ends_us(holder)
  local us = us_of(holder.expires_at)
  return holder.lease_class == 'agent' and us + grace_us or us
end

local function read_capacity(item)
  local limit = redis.call('HMGET', item.lock, 'max_tasks', 'status')
  item.limit, item.status = tonumber(limit[1]), limit[2]
  item.active = redis.call('ZCOUNT', item.leases, '(' .. seconds(now), '+inf')
end

-- The holders, alone or shared, in one form.
local function read_holders(item)
  if item.kind == 'a' then return read_capacity(item) end
  local lock = redis.call('HMGET', item.lock, item.kind == 't' and 'holder_agent_id' or 'exclusive_holder', 'lock_id',
    'fencing_token', 'acquired_at', 'expires_at', 'lease_class', 'hold_until', 'holders')
  if lock[8] then
    item.holders = cjson.decode(lock[8])
    item.held_shared = true
  elseif lock[1] then
    item.holders[1] = {
      agent_id = lock[1], lock_id = lock[2] or '', fencing_token = lock[3] or '0', acquired_at = lock[4] or '',
      expires_at = lock[5] or '9', lease_class = lock[6] or nil, hold_until = lock[7] or nil,
    }
  end
end

-- The place of an agent's capacity that this lock_id has, in the form of a holder. Its score counts the grace in.
local function lease_of(item, lock_id)
  local ends = tonumber(redis.call('ZSCORE', item.leases, lock_id))
  if not ends or ends * 1000000 <= now then return nil end
  local token = redis.call('HGET', item.fence, 'lease:' .. lock_id) or '0'
  return { lock_id = lock_id, agent_id = args.agent, fencing_token = token, acquired_at = iso_time(tonumber(token)),
    expires_at = iso_time(ends * 1000000) }
end

local function grant_of(item, lock_id)
  if item.kind == 'a' then return lease_of(item, lock_id) end
  for i = 1, #item.holders do
    if item.holders[i].lock_id == lock_id then return item.holders[i], i end
  end
end

-- Those who held a lock whose key ended before anyone noticed. The fence, which outlives it, still says so.
local function vanished(item)
  if item.kind == 'a' or #item.holders > 0 or item.state ~= 'held' then return {} end
  if item.sharing then return cjson.decode(item.sharing) end
  return { { agent_id = item.last_holder, lock_id = item.last_lock_id, fencing_token = whole_number(item.token) } }
end

-- The fence keeps a copy of who shares a lock: its key ends with the last of them, and each is to be told of.
local function note_sharing(item, holders)
  if #holders == 0 then
    redis.call('HDEL', item.fence, 'sharing')
  else
    redis.call('HSET', item.fence, 'sharing', cjson.encode(holders)) -- guard
  end
end

-- A shared lock is written as the list of those who hold it; when nobody does, there is no key, for an empty list is
-- an object to cjson. The key lives as long as the last of them, the registry wakes the sweeper for the first.
local function write_shared(item)
  local first, last
  for _, holder in ipairs(item.holders) do
    local ends = ends_us(holder)
    first, last = math.min(first or ends, ends), math.max(last or ends, ends)
  end
  note_sharing(item, item.holders)
  if not first then
    redis.call('DEL', item.lock)
    return
  end
  redis.call('HSET', item.lock, 'mode', 'shared', 'holders', cjson.encode(item.holders),
    'acquired_at', item.holders[1].acquired_at, 'expires_at', iso_time(last))
  redis.call('PEXPIRE', item.lock, math.max(1, math.ceil((last - now) / 1000))) -- guard
  return first
end

-- When the first of the places taken comes back.
local function first_lease(item)
  local first = redis.call('ZRANGE', item.leases, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2]) * 1000000
end
