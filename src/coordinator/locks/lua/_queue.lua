-- Waiting in line. The queue is ordered by arrival; `waiters` has, per lock_id, until when the waiter counts as alive,
-- its place in µs and its exact queue entry. Nobody takes a waiter out to give it the lock: the first one alive takes it
-- in a call of its own, so a wake-up cannot be lost with whoever should have passed it on. A victim of a deadlock has the
-- cycle there instead of an entry, marked ! until it was told and ? from then on: asking again it keeps its age.
local function waiter_of(item, lock_id)
  local text = redis.call('HGET', item.waiters, lock_id)
  if not text then return nil end
  local mark, deadline, since, entry = string.match(text, '^([!?]?)(%d+)|(%d+)|(.*)$')
  return { aborted = mark == '!', told = mark == '?', deadline = tonumber(deadline), since = tonumber(since), entry = entry }
end

-- Waits by this lock_id, but is somebody else. A word for the victim of a deadlock does not say whose it is.
local function is_foreign(waiter)
  return not waiter.aborted and not waiter.told and string.find(waiter.entry, '{"agent_id":"' .. args.agent .. '",', 1, true) ~= 1
end

-- Walks the line from its head and hands each live waiter to `visit` until that returns true. The dead are noted.
-- Nearly always the first one decides, so it is looked at alone; then ever more at a time.
local function walk(item, visit)
  item.dead = {}
  local from, size = 0, 1
  repeat
    local batch = redis.call('ZRANGE', item.queue, from, from + size - 1, 'WITHSCORES')
    for i = 1, #batch, 2 do
      local entry = batch[i]
      local parsed, waiter = pcall(cjson.decode, entry)
      local lock_id = parsed and type(waiter) == 'table' and waiter.lock_id
      local known = lock_id and waiter_of(item, lock_id)
      local alive = known and not known.aborted and not known.told
      if alive and known.deadline <= now then alive = false end -- guard
      if not alive then
        item.dead[#item.dead + 1] = { entry = entry, lock_id = lock_id }
      elseif visit(waiter, tonumber(batch[i + 1]) * 1000) then
        return
      end
    end
    local isLast = #batch < size * 2
    from, size = from + size, math.min(size * 4, 64)
  until isLast
end

-- Who keeps a newcomer, or one who waits since then, from being next: the first live waiter before it that wants what
-- excludes it. Readers pass readers, but no writer, so that writers are not starved.
local function ahead(item, since)
  local first
  walk(item, function(waiter, place)
    if since and place >= since then return true end -- guard
    if item.shared and waiter.mode == 'shared' then return false end -- guard
    first = waiter
    return true
  end)
  return first
end

local function bury(item)
  for _, dead in ipairs(item.dead or {}) do
    redis.call('ZREM', item.queue, dead.entry)
    if dead.lock_id then redis.call('HDEL', item.waiters, dead.lock_id) end -- guard
  end
  item.dead = {}
end

-- The length of the line, for those who look at the lock. Only where there is one: else this would make a lock of its own.
local function note_length(item)
  local length = redis.call('ZCARD', item.queue)
  if item.kind == 'a' then
    if item.limit then redis.call('HSET', item.lock, 'queued_tasks', length) end
  elseif redis.call('EXISTS', item.lock) == 1 then
    redis.call('HSET', item.lock, 'queue_length', length)
  end
  if whole and redis.call('EXISTS', item.waiters) == 0 then redis.call('ZREM', waiting, item.lock) end -- guard
  return length
end

local function leave(item, lock_id, waiter)
  redis.call('ZREM', item.queue, waiter.entry) -- guard
  redis.call('HDEL', item.waiters, lock_id) -- guard
  if whole then redis.call('SREM', waitfor, item.lock) end -- guard
end

-- Calls those who may take the lock now: the first in line, and if that is a reader, the readers right behind it.
local function promote(item)
  local places = 1
  if item.kind == 'a' then places = item.status == 'active' and item.limit - item.active or 0 end
  if places < 1 or #item.holders > 0 and not item.held_shared then return end
  local called = {}
  walk(item, function(waiter)
    local reads = item.kind ~= 'a' and waiter.mode == 'shared'
    local beside_readers = item.kind ~= 'a' and (#item.holders > 0 or #called > 0)
    if beside_readers and not reads then return true end
    called[#called + 1] = waiter.agent_id
    return not reads and #called >= places
  end)
  for _, agent in ipairs(called) do tell(item, 'promoted', agent) end
end
