-- The locks that a call names, as items, and what is read of them. Every script over locks takes its keys in one order:
--   on one server: registry, waiting, events, the agent's index, waitfor and rate limit; nothing of these in a cluster,
--   where they live in other slots and the caller keeps them, as supersets, before a grant and after a release;
--   then per lock: lock, queue, waiters, fence, channel, of capacity also leases, of resources (on one server) the type's index
-- and these arguments:
--   args.shape     two letters per lock: kind (t, r, a) and mode (x, s)
--   args.whole     1 on one server
--   args.publish   PUBLISH or SPUBLISH
--   args.grace_us  how long after its lease the lock of an agent-class holder is nobody else's yet
-- @include ../../../redis/lua/_time.lua
local now = now_us()
local now_text = iso_time(now)
local all = keys.all
local whole = args.whole == 1
local registry, waiting, stream, index, waitfor, rate
local items = {}
local FENCE_TTL = 7776000

do
  local at = 0
  if whole then
    registry, waiting, stream, index, waitfor, rate = unpack(all, 1, 6)
    at = 6
  end
  for i = 1, #args.shape, 2 do
    local item = {
      kind = string.sub(args.shape, i, i), shared = string.sub(args.shape, i + 1, i + 1) == 's',
      lock = all[at + 1], queue = all[at + 2], waiters = all[at + 3], fence = all[at + 4], channel = all[at + 5],
    }
    at = at + 5
    if item.kind == 'a' then
      at = at + 1
      item.leases = all[at]
    elseif item.kind == 'r' and whole then
      at = at + 1
      item.type_index = all[at]
    end
    items[#items + 1] = item
  end
end

local function whole_number(n)
  return string.format('%.0f', n)
end

local function seconds(us)
  return string.format('%.6f', us / 1000000)
end

local grace_text
-- A lease is over at its end, not after it. An agent's own beat may revive it in the grace; until then nobody else gets it.
local function is_over(holder)
  if holder.expires_at > now_text then return false end
  if holder.lease_class ~= 'agent' then return true end
  grace_text = grace_text or iso_time(now - args.grace_us)
  return holder.expires_at <= grace_text
end

-- The parts of the text that iso_time() makes, back to µs.
local function us_of(text)
  local y, mo, d, h, mi, s = string.match(text, '^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$')
  if not y then return now end
  y, mo = tonumber(y), tonumber(mo)
  if mo <= 2 then y, mo = y - 1, mo + 12 end
  local days = 365 * y + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400)
    + math.floor((153 * (mo - 3) + 2) / 5) + tonumber(d) - 1 - 719468
  return math.floor(((days * 24 + tonumber(h)) * 60 + tonumber(mi)) * 60000000 + tonumber(s) * 1000000 + 0.5)
end

-- When nobody but the holder's heirs may have it any more.
local function ends_us(holder)
  local us = us_of(holder.expires_at)
  return holder.lease_class == 'agent' and us + args.grace_us or us
end

local function read_capacity(item)
  local status = redis.call('HMGET', item.lock, 'max_tasks', 'status')
  item.limit, item.status = tonumber(status[1]), status[2]
  item.active = redis.call('ZCOUNT', item.leases, '(' .. seconds(now), '+inf')
  return item
end

-- Reads a lock: its fence and its holders, alone or shared, in one form.
local function read(item)
  local fence = redis.call('HMGET', item.fence, 'token', 'state', 'last_lock_id', 'last_released', 'enq', 'hold_us', 'last_holder')
  item.token, item.state, item.last_lock_id, item.last_released = tonumber(fence[1]) or 0, fence[2], fence[3], fence[4]
  item.enq, item.hold_us, item.last_holder = tonumber(fence[5]) or 0, tonumber(fence[6]), fence[7]
  item.holders = {}
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
  return item
end

-- The place of an agent's capacity that this lock_id has, in the form of a holder. Its score counts the grace in.
local function lease_of(item, lock_id)
  local ends = tonumber(redis.call('ZSCORE', item.leases, lock_id))
  if not ends or ends * 1000000 <= now then return nil end
  local token = redis.call('HGET', item.fence, 'lease:' .. lock_id) or '0'
  return { lock_id = lock_id, fencing_token = token, acquired_at = iso_time(tonumber(token)), expires_at = iso_time(ends * 1000000) }
end

local function grant_of(item, lock_id)
  if item.kind == 'a' then return lease_of(item, lock_id) end
  for i = 1, #item.holders do
    if item.holders[i].lock_id == lock_id then return item.holders[i], i end
  end
end

local function name_of(item)
  local name = string.sub(item.lock, 10)
  return item.kind == 'a' and string.gsub(name, ':capacity$', '') or name
end

-- Says on the lock's channel and in the event stream what happened. Nobody may rely on the channel: it is a hint.
local told = {}
local function tell(item, word, agent, facts)
  redis.call(args.publish, item.channel, word == 'expired' and word or word .. ':' .. agent)
  local rest = '"agent_id":"' .. agent .. '"' .. (facts or '') .. '}'
  if whole then
    redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:' .. word, 'timestamp', now_text,
      'payload', '{"lock":"' .. name_of(item) .. '",' .. rest, 'source', ctx.source)
  else
    told[#told + 1] = 'lock:' .. word
    told[#told + 1] = '{' .. rest
  end
end

-- In a cluster the stream is elsewhere: what it should be told travels with the answer.
local function with_told(reply)
  return whole and reply or { reply, told }
end

-- A shared lock is written as the list of those who hold it; when nobody does, there is no key, for an empty list is
-- an object to cjson. The key lives as long as the last of them, the registry wakes the sweeper for the first.
local function write_shared(item)
  local first, last
  for _, holder in ipairs(item.holders) do
    local ends = ends_us(holder)
    if not first or ends < first then first = ends end
    if not last or ends > last then last = ends end
  end
  if not first then
    redis.call('DEL', item.lock)
    return
  end
  redis.call('HSET', item.lock, 'mode', 'shared', 'holders', cjson.encode(item.holders),
    'acquired_at', item.holders[1].acquired_at, 'expires_at', iso_time(last))
  redis.call('PEXPIRE', item.lock, math.max(1, math.ceil((last - now) / 1000))) -- guard
  return first
end

local function is_in_use(item)
  if item.kind == 'a' then return item.active > 0 end
  return #item.holders > 0
end
