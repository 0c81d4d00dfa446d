-- Puts a ready task into the public list, beside the next better one there, if it is good enough for it. Those that plain clients took
-- from it are not there any more; beyond a few of them the place need not be exact, for the reconcile puts the list in order.
local NEIGHBOURS = 8
local function place_on_list(task)
  local queue, offered, order = key.taskQueue(), key.offeredTasks(), key.readyOrder()
  local listed = redis.call('ZCARD', offered)
  local rank = redis.call('ZRANK', order, task)
  -- Better ones that are not listed yet come first: it joins with them.
  if rank >= args.window or rank > listed and is_long_enough(listed) then return false end
  if rank >= listed then
    public('LPUSH', queue, task)
  else
    local placed = -1
    local better = rank > 0 and redis.call('ZRANGE', order, math.max(0, rank - NEIGHBOURS), rank - 1) or {}
    for at = #better, 1, -1 do
      if placed < 1 then placed = public('LINSERT', queue, 'BEFORE', better[at], task) end
    end
    if placed < 1 then public('RPUSH', queue, task) end
  end
  redis.call('ZADD', offered, whole_number(now), task)
  if listed >= args.window then
    local worst = public('LPOP', queue)
    if worst then redis.call('ZREM', offered, worst) end
  end
  return true
end
