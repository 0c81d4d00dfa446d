-- The public list is a window on what is ready: the best of it, in order, with the best at its right end.
local function is_paused(lane)
  local pauses = key.pauses()
  if redis.call('EXISTS', pauses) == 0 then return false end
  local found = redis.call('HMGET', pauses, 'all', lane)
  for at, what in ipairs({ 'all', lane }) do
    if found[at] then
      local ends = tonumber(cjson.decode(found[at]).ends) or 0
      if ends == 0 or ends > now / 1000000 then return true end
    end
  end
  return false
end

-- The list is filled up from behind as it drains, a sixteenth of it at a time, so that not every claim pays for it.
local function is_long_enough(listed)
  return listed > args.window - math.max(1, math.floor(args.window / 16))
end

--   belongs    tells whether a task may stand there; nil: all may
local function refill(belongs)
  local order, offered = key.readyOrder(), key.offeredTasks()
  local listed = redis.call('ZCARD', offered)
  if is_long_enough(listed) or redis.call('ZCARD', order) <= listed then return end
  local found = redis.call('ZRANGE', order, listed, math.min(args.window, listed + 500) - 1)
  local known = redis.call('ZMSCORE', offered, unpack(found))
  local names, entries = {}, {}
  for at, next in ipairs(found) do
    if known[at] or belongs and not belongs(next) then break end
    names[at] = next
    entries[#entries + 1], entries[#entries + 2] = whole_number(now), next
  end
  if not names[1] then return end
  public('LPUSH', key.taskQueue(), unpack(names))
  redis.call('ZADD', offered, unpack(entries))
end
