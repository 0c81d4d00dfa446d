-- Copy what the queue says to where plain readers of the older names look for it. Read and written in one step: of two daemons
-- that do so at once, none can put an older word over a newer.
--   args.tasks    ids
--   args.looks    1: what is right already is left alone, as most of it is; 0: something has changed
--   args.queue    1: the list, too
-- Outcome: how many tasks were there
-- @include _task.lua

local NINETY_DAYS, RENEWED_AT = 7776000, 3888000

local function is_right(mirror, id, v)
  if redis.call('TYPE', mirror).ok ~= 'hash' or redis.call('HLEN', mirror) ~= 6 then return false end
  local is = redis.call('HMGET', mirror, 'task_id', 'status', 'agent_id', 'attempts', 'reason', 'updated_at')
  return is[1] == id and is[2] == v[1] and is[3] == (v[2] or '') and is[4] == (v[3] or '0') and is[5] == (v[4] or '') and is[6]
    and redis.call('TTL', mirror) > RENEWED_AT
end

local found = 0
for _, id in ipairs(args.tasks) do
  local mirror = key.mirrorStatus(args.head .. id)
  local v = redis.call('HMGET', key.taskRecord(id), 'status', 'agent', 'attempts', 'reason')
  if v[1] then found = found + 1 end
  if not (v[1] and args.looks == 1 and is_right(mirror, id, v)) then
    redis.call('DEL', mirror)
    if v[1] then
      redis.call('HSET', mirror, 'task_id', id, 'status', v[1], 'agent_id', v[2] or '', 'attempts', v[3] or 0, 'reason', v[4] or '',
        'updated_at', now_text)
      redis.call('EXPIRE', mirror, NINETY_DAYS)
    end
  end
end
local function list_of(queue)
  return redis.call('TYPE', queue).ok == 'list' and table.concat(redis.call('LRANGE', queue, 0, -1), ' ')
end

local queue, copy = key.taskQueue(), key.mirrorQueue()
if args.queue == 1 and not (args.looks == 1 and list_of(queue) == list_of(copy)) then
  if redis.call('COPY', queue, copy, 'REPLACE') == 0 then redis.call('DEL', copy) end
end
return found
