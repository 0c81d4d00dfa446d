-- Take locks, one or several, all or nothing; or wait in line for those that are not to be had. Asking again with the
-- same lock_id is the same request: it answers with the grant, or keeps the place in line.
--   args.agent, args.lock_id, args.purpose
--   args.lease_us, args.lease_class, args.hold_us     how long without a beat; process or agent; at most in all (0: no limit)
--   args.wait_us, args.patience_us   how long to wait in line (0: do not); how long a silent waiter counts as alive
--   args.max_wait, args.priority     for the queue entry: seconds, number
--   args.queued     1: the caller believes it waits in line
--   args.since      its age in µs if it waited before and was made to try anew, else 0
--   args.depth      longest line
--   args.emission_us, args.burst     how often an agent may ask (0: as often as it likes)
-- Outcomes: GRANTED again acquired_at expires_at token… · QUEUED n position since expected_ms · HELD n · FULL n depth
--   EXPIRED n agent… (call reap for them, then ask again) · SPENT n · REFUSED n why · DEADLOCK n since cycle · EVICTED
--   LIMITED retry_ms. n is the lock that decided. After QUEUED and HELD: waiting free_in_ms holders…
-- @include _locks.lua
-- @include _queue.lua
-- @include _rate.lua

local function overdue(item)
  local agents = {}
  for _, holder in ipairs(item.holders) do
    if is_over(holder) then agents[#agents + 1] = holder.agent_id end
  end
  if #item.holders == 0 and item.kind ~= 'a' and item.state == 'held' then agents[1] = item.last_holder or '' end
  return agents
end

local function refusal(item)
  if item.kind ~= 'a' then return nil end
  if not item.limit then return 'unregistered' end
  if item.status ~= 'active' then return item.status end
end

local function is_free(item, mine)
  if item.kind == 'a' then return item.active < item.limit end -- guard
  if mine then return #item.holders == 1 end -- guard
  if #item.holders == 0 then return true end
  return item.shared and item.held_shared
end

local function blockers(item)
  local free_us, who = 0, {}
  for _, holder in ipairs(item.holders) do
    free_us = math.max(free_us, ends_us(holder) - now)
    who[#who + 1] = holder.agent_id
    who[#who + 1] = holder.acquired_at
    who[#who + 1] = holder.expires_at
    who[#who + 1] = holder.purpose or (not item.held_shared and redis.call('HGET', item.lock, 'purpose')) or ''
  end
  return free_us, who
end

local function answer(head, item)
  local free_us, who = blockers(item)
  head[#head + 1] = redis.call('ZCARD', item.queue)
  head[#head + 1] = math.ceil(free_us / 1000)
  for _, text in ipairs(who) do head[#head + 1] = text end
  return head
end

-- First everything is read and judged; nothing is written before every lock has its verdict.
local fresh, joined, since = true, false, args.since > 0 and args.since or nil
local blocked
for n, item in ipairs(items) do
  read(item)
  local mine = grant_of(item, args.lock_id)
  if mine and is_over(mine) then return { 'SPENT', n } end -- guard
  item.mine = mine
  if mine then
    fresh = false
    item.upgrade = not item.shared and item.held_shared
  else
    local over = item.last_lock_id == args.lock_id or item.last_released == args.lock_id
    if over then return { 'SPENT', n } end -- guard
    local why = refusal(item)
    if why then return { 'REFUSED', n, why } end -- guard
  end
  local agents = overdue(item)
  if #agents > 0 then return { 'EXPIRED', n, unpack(agents) } end -- guard
  item.line = redis.call('EXISTS', item.queue) == 1
  if item.line or args.wait_us > 0 or args.queued == 1 then
    item.waiter = waiter_of(item, args.lock_id)
    if item.waiter and item.waiter.aborted then
      if not mine then
        redis.call('HDEL', item.waiters, args.lock_id)
        return { 'DEADLOCK', n, item.waiter.since, item.waiter.cycle }
      end
    elseif item.waiter then
      joined = true
      since = since and math.min(since, item.waiter.since) or item.waiter.since
    end
  end
end
if args.queued == 1 and not joined and fresh then return { 'EVICTED' } end -- guard

for n, item in ipairs(items) do
  if not item.mine or item.upgrade then
    local first = item.line and ahead(item, args.lock_id, since)
    if item.upgrade and (first or not is_free(item, true)) then return { 'REFUSED', n, 'upgrade' } end -- guard
    if first or not is_free(item, item.upgrade) then -- guard
      item.blocked = true
      blocked = blocked or n
    end
  end
end

local spends = fresh and not joined and args.emission_us > 0 and whole
if spends then
  local wait_us = must_wait(rate)
  if wait_us then return { 'LIMITED', math.ceil(wait_us / 1000) } end -- guard
end

if blocked and args.wait_us == 0 then
  if spends then spend(rate) end
  return answer({ 'HELD', blocked }, items[blocked])
end

if blocked then
  for n, item in ipairs(items) do
    if item.blocked and not item.waiter and redis.call('ZCARD', item.queue) - #(item.dead or {}) >= args.depth then -- guard
      return { 'FULL', n, args.depth }
    end
  end
  if spends then spend(rate) end
  local deadline = now + math.min(args.wait_us, args.patience_us)
  for _, item in ipairs(items) do
    bury(item)
    if item.blocked then
      local waiter, isNew = item.waiter, not item.waiter
      if isNew then
        local place = since or math.max(now, item.enq + 1) -- guard
        since = since or place
        waiter = { since = place, entry = '{"agent_id":"' .. args.agent .. '","mode":"' .. (item.shared and 'shared' or 'exclusive')
          .. '","priority":' .. args.priority .. ',"requested_at":"' .. now_text .. '","max_wait_seconds":' .. args.max_wait
          .. ',"lock_id":"' .. args.lock_id .. '"}' }
        if whole then redis.call('SADD', waitfor, item.lock) end -- guard
        if item.token == 0 and item.enq == 0 and item.kind == 't' then
          redis.call('HSET', item.fence, 'enq', whole_number(place))
          redis.call('EXPIRE', item.fence, FENCE_TTL)
        elseif place > item.enq then
          redis.call('HSET', item.fence, 'enq', whole_number(place))
        end
        redis.call('ZADD', item.queue, string.format('%.3f', place / 1000), waiter.entry)
        item.waiter = waiter
      end
      redis.call('HSET', item.waiters, args.lock_id,
        whole_number(deadline) .. '|' .. whole_number(waiter.since) .. '|' .. waiter.entry) -- guard
      if whole then
        redis.call('EXPIRE', waitfor, 300)
        redis.call('ZADD', waiting, seconds(deadline), item.lock)
      end
      if isNew then
        note_length(item)
        tell(item, 'queued', args.agent)
      end
    end
  end
  local item = items[blocked]
  local position = (redis.call('ZRANK', item.queue, item.waiter.entry) or 0) + 1
  local expected = -1
  if item.hold_us then
    local spent = item.holders[1] and now - us_of(item.holders[1].acquired_at) or 0
    expected = math.ceil((math.max(item.hold_us - spent, 0) + (position - 1) * item.hold_us) / 1000)
  end
  return with_told(answer({ 'QUEUED', blocked, position, whole_number(item.waiter.since), expected }, item))
end

if spends then spend(rate) end
local expires = now + args.lease_us
local hold_until
if args.hold_us > 0 then
  hold_until = iso_time(now + args.hold_us)
  expires = math.min(expires, now + args.hold_us) -- guard
end
local expires_text = iso_time(expires)
local of_agent = args.lease_class == 'agent'
local ends = of_agent and expires + args.grace_us or expires

local function next_token(item)
  return math.max(item.token + 1, now) -- guard
end

-- The indexes first: if anything fails between, they name a lock too many, which the sweeper finds, never one too few.
local function enter_indexes(item, first_end)
  if not whole then return end
  redis.call('ZADD', registry, seconds(first_end), item.lock) -- guard
  if item.kind ~= 'a' then redis.call('SADD', index, item.lock) end -- guard
  if item.type_index then redis.call('SADD', item.type_index, item.lock) end -- guard
end

local function grant_capacity(item, token)
  local first = redis.call('ZRANGE', item.leases, 0, 0, 'WITHSCORES')
  enter_indexes(item, math.min(ends, first[2] and tonumber(first[2]) * 1000000 or ends))
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
    lease_class = of_agent and 'agent' or nil, hold_until = hold_until, purpose = args.purpose ~= '' and args.purpose or nil,
  }
  write_shared(item)
end

local function grant_alone(item, token)
  enter_indexes(item, ends)
  if item.upgrade then redis.call('DEL', item.lock) end
  local fields = {
    item.kind == 't' and 'holder_agent_id' or 'exclusive_holder', args.agent, 'acquired_at', now_text, 'expires_at', expires_text,
    'purpose', args.purpose, 'heartbeat_count', 0, 'queue_length', 0, 'lock_id', args.lock_id, 'fencing_token', token,
  }
  if item.kind == 'r' then fields[#fields + 1], fields[#fields + 2] = 'mode', 'exclusive' end
  if of_agent then fields[#fields + 1], fields[#fields + 2] = 'lease_class', 'agent' end
  if hold_until then fields[#fields + 1], fields[#fields + 2] = 'hold_until', hold_until end
  redis.call('HSET', item.lock, unpack(fields))
  redis.call('PEXPIRE', item.lock, math.ceil((ends - now) / 1000)) -- guard
  item.holders = { true }
end

local reply = { 'GRANTED', 1, now_text, expires_text }
for n, item in ipairs(items) do
  if item.mine and not item.upgrade then
    reply[n + 4] = item.mine.fencing_token
    reply[3], reply[4] = item.mine.acquired_at, item.mine.expires_at
  else
    local us = next_token(item)
    local token = whole_number(us)
    reply[2], reply[n + 4] = 0, token
    if item.kind == 'a' then grant_capacity(item, token)
    elseif item.shared then grant_shared(item, token)
    else grant_alone(item, token) end
    redis.call('HSET', item.fence, 'token', token, 'state', 'held', 'last_holder', args.agent, 'last_lock_id', args.lock_id) -- guard
    -- A day of the ninety is little enough not to be renewed with every grant.
    if item.kind == 't' and us - item.token > 86400000000 then redis.call('EXPIRE', item.fence, FENCE_TTL) end
    if item.line then
      bury(item)
      if item.waiter then leave(item, args.lock_id, item.waiter) end
      note_length(item)
    end
    tell(item, 'acquired', args.agent, ',"lock_id":"' .. args.lock_id .. '","fencing_token":"' .. token .. '"')
  end
end
return with_told(reply)
