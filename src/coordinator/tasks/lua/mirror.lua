-- Copy what the queue says to where plain readers of the older names look for it. Read and written in one step: of two daemons
-- that do so at once, none can put an older word over a newer.
--   args.tasks    ids
--   args.queue    1: the list, too
-- Outcome: how many tasks were there
-- @include _task.lua

local found = 0
for _, id in ipairs(args.tasks) do
  local mirror = key.mirrorStatus(args.head .. id)
  local v = redis.call('HMGET', key.taskRecord(id), 'status', 'agent', 'attempts', 'reason')
  redis.call('DEL', mirror)
  if v[1] then
    found = found + 1
    redis.call('HSET', mirror, 'task_id', id, 'status', v[1], 'agent_id', v[2] or '', 'attempts', v[3] or 0, 'reason', v[4] or '',
      'updated_at', now_text)
    redis.call('EXPIRE', mirror, 7776000)
  end
end
if args.queue == 1 and redis.call('COPY', key.taskQueue(), key.mirrorQueue(), 'REPLACE') == 0 then redis.call('DEL', key.mirrorQueue()) end
return found
