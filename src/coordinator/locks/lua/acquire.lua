-- Take locks, one or several, all or nothing; or wait in line for those that are not to be had. Asking again with the
-- same lock_id is the same request: it answers with the grant, or keeps the place in line.
--   args.agent, args.lock_id, args.purpose
--   args.lease_us, args.lease_class    how long without a beat; process or agent
--   args.hold_us                       how long at most in all; 0: no limit
--   args.wait    empty: do not wait in line. Else, parted by |: first, or again (the caller believes it waits already), us,
--                patience_us (how long a silent waiter counts as alive), depth (longest line), priority, since (its age in µs
--                from an earlier try, or 0)
-- Outcomes: GRANTED again acquired_at expires_at token… · QUEUED n position since expected_ms · HELD n · FULL n depth
--   EXPIRED n agent… (call reap for them, then ask again) · SPENT n · REFUSED n why · DEADLOCK n since cycle · EVICTED
--   n is the lock that decided. After QUEUED and HELD follow: waiting, free_in_ms, and four texts per holder.
-- @include _usual-acquire.lua
-- @include _locks.lua
-- @include _holders.lua
-- @include _grant.lua
-- @include _queue.lua
local wait
if args.wait ~= '' then
  local which, us, patience_us, depth, priority, since = string.match(args.wait, '^(%a+)|(.-)|(.-)|(.-)|(.-)|(.*)$')
  wait = { queued = which == 'again', us = tonumber(us), patience_us = tonumber(patience_us), depth = tonumber(depth),
    priority = priority, since = tonumber(since) }
end
local FENCE_SECONDS, WAITFOR_SECONDS = 7776000, 300

-- Leases that are over, of holders or of a key that ended before anyone noticed.
local function overdue(item)
  local agents = {}
  for _, holder in ipairs(item.holders) do
    if is_over(holder) then agents[#agents + 1] = holder.agent_id end
  end
  for _, holder in ipairs(vanished(item)) do agents[#agents + 1] = holder.agent_id end
  return agents
end

local function refusal(item)
  if not item.limit then return 'unregistered' end
  if item.status ~= 'active' then return item.status end
end

local function is_free(item)
  if item.kind == 'a' then return item.active < item.limit end
  if item.upgrade then return #item.holders == 1 end
  return #item.holders == 0 or item.shared and item.held_shared
end

local function blockers(reply, item)
  local free_us, at = 0, #reply
  for _, holder in ipairs(item.holders) do
    free_us = math.max(free_us, ends_us(holder) - now)
    for _, text in ipairs({ holder.agent_id, holder.acquired_at, holder.expires_at,
      holder.purpose or not item.held_shared and redis.call('HGET', item.lock, 'purpose') or '' }) do
      reply[#reply + 1] = text
    end
  end
  table.insert(reply, at + 1, redis.call('ZCARD', item.queue))
  table.insert(reply, at + 2, math.ceil(free_us / 1000))
  return reply
end

-- First everything is read and judged; nothing is written before every lock has its verdict: Lua has no rollback.
local fresh, joined, blocked = true, false, nil
local since = wait and wait.since > 0 and wait.since or nil
for n, item in ipairs(items) do
  local there = item.kind == 'a' and 1 or redis.call('EXISTS', item.lock, item.queue)
  if there > 0 then
    read_holders(item)
    item.line = redis.call('EXISTS', item.queue) == 1
    item.mine = grant_of(item, args.lock_id)
  end
  read_fence(item)
  if item.mine then
    if item.mine.agent_id ~= args.agent then return { 'REFUSED', n, 'foreign' } end -- guard
    if is_over(item.mine) then return { 'SPENT', n } end -- guard
    fresh = false
    item.upgrade = not item.shared and item.held_shared
  else
    if item.last_lock_id == args.lock_id then return { 'SPENT', n } end -- guard
    if item.last_released == args.lock_id then return { 'SPENT', n } end -- guard
    local why = item.kind == 'a' and refusal(item)
    if why then return { 'REFUSED', n, why } end -- guard
  end
  local agents = overdue(item)
  if #agents > 0 then return { 'EXPIRED', n, unpack(agents) } end -- guard
  item.waiter = (item.line or wait) and waiter_of(item, args.lock_id)
  if item.waiter and is_foreign(item.waiter) then return { 'REFUSED', n, 'foreign' } end -- guard
  if item.waiter and item.waiter.aborted then
    local told = '?' .. whole_number(item.waiter.deadline) .. '|' .. whole_number(item.waiter.since) .. '|'
    redis.call('HSET', item.waiters, args.lock_id, told) -- guard
    if not item.mine then return { 'DEADLOCK', n, whole_number(item.waiter.since), item.waiter.entry } end
    item.waiter = nil
  elseif item.waiter and item.waiter.told then
    since = math.min(since or item.waiter.since, item.waiter.since) -- guard
    item.waiter = nil
  elseif item.waiter then
    joined = true
    since = math.min(since or item.waiter.since, item.waiter.since)
  end
end
if wait and wait.queued and fresh and not joined then return { 'EVICTED' } end -- guard

for n, item in ipairs(items) do
  if not item.mine or item.upgrade then
    local first = item.line and ahead(item, since)
    local free = is_free(item)
    if first then free = false end -- guard
    if item.upgrade and not free then return { 'REFUSED', n, 'upgrade' } end -- guard
    item.blocked = not free
    if not free then blocked = blocked or n end -- guard
  end
end

if blocked and not wait then return blockers({ 'HELD', blocked }, items[blocked]) end

-- A place in line: behind everyone there, even within one µs or after the clock went back; a retry keeps its age, and so
-- does one who waits for several locks, so that all lines have their waiters in one order and none waits in a circle.
local function join(item)
  local enq = tonumber(redis.call('HGET', item.fence, 'enq')) or 0
  local place = now
  if place <= enq then place = enq + 1 end -- guard
  if since then place = since end -- guard
  since = place
  local waiter = { since = place, entry = '{"agent_id":"' .. args.agent .. '","mode":"' .. (item.shared and 'shared' or 'exclusive')
    .. '","priority":' .. wait.priority .. ',"requested_at":"' .. now_text .. '","max_wait_seconds":'
    .. math.ceil(wait.us / 1000000) .. ',"lock_id":"' .. args.lock_id .. '"}' }
  if whole then redis.call('SADD', waitfor, item.lock) end -- guard
  if place > enq then redis.call('HSET', item.fence, 'enq', whole_number(place)) end
  if item.kind == 't' and item.token == 0 then redis.call('EXPIRE', item.fence, FENCE_SECONDS) end
  redis.call('ZADD', item.queue, string.format('%.3f', place / 1000), waiter.entry)
  return waiter
end

local function stay(item)
  local joins = not item.waiter
  if joins then item.waiter = join(item) end
  local deadline = now + math.min(wait.us, wait.patience_us)
  redis.call('HSET', item.waiters, args.lock_id,
    whole_number(deadline) .. '|' .. whole_number(item.waiter.since) .. '|' .. item.waiter.entry)
  if whole then
    redis.call('EXPIRE', waitfor, WAITFOR_SECONDS) -- guard
    redis.call('ZADD', waiting, 'LT', seconds(deadline), item.lock) -- guard
  end
  if joins then
    note_length(item)
    tell(item, 'queued', args.agent)
  end
end

-- How long until it is this waiter's turn, if everyone keeps the lock as long as it is usually kept.
local function expected_ms(item, position)
  local usual = tonumber(redis.call('HGET', item.fence, 'hold_us'))
  if not usual then return -1 end
  local spent = item.holders[1] and now - us_of(item.holders[1].acquired_at) or 0
  return math.ceil((math.max(usual - spent, 0) + (position - 1) * usual) / 1000)
end

if blocked then
  for n, item in ipairs(items) do
    local length = item.blocked and not item.waiter and redis.call('ZCARD', item.queue) - #(item.dead or {}) or 0
    if length >= wait.depth then return { 'FULL', n, wait.depth } end -- guard
  end
  for _, item in ipairs(items) do
    bury(item)
    if item.blocked then stay(item) end
  end
  local item = items[blocked]
  local position = (redis.call('ZRANK', item.queue, item.waiter.entry) or 0) + 1
  return with_told(blockers({ 'QUEUED', blocked, position, whole_number(item.waiter.since), expected_ms(item, position) }, item))
end

-- @include _grants.lua

local function grant(item)
  local us = next_token(item)
  local token = whole_number(us)
  local give = item.kind == 'a' and grant_place or item.shared and grant_shared or grant_alone
  give(item, token)
  if item.line then
    bury(item)
    if item.waiter then leave(item, args.lock_id, item.waiter) end
    note_length(item)
  end
  seal(item, us, token)
  return token
end

local reply = { 'GRANTED', 1, now_text, expires_text }
for n, item in ipairs(items) do
  if item.mine and not item.upgrade then
    reply[n + 4], reply[3], reply[4] = item.mine.fencing_token, item.mine.acquired_at, item.mine.expires_at
  else
    reply[n + 4], reply[2] = grant(item), 0
  end
end
return with_told(reply)
