-- Of a stretch of all tasks, those whose public status is not what the queue has. What is of another type there is not, either.
--   args.from, args.count    a stretch, in the order of their numbers
-- Outcome: how many were looked at, as text; the ids
local ids = redis.call('ZRANGE', key.knownTasks(), args.from, args.from + args.count - 1)
local drifted = {}
for _, id in ipairs(ids) do
  if redis.pcall('GET', key.taskStatus(id)) ~= redis.call('HGET', key.taskRecord(id), 'status') then drifted[#drifted + 1] = id end
end
return { { tostring(#ids) }, drifted }
