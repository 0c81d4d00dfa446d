-- Read back what plain clients did: ids that left the public list unclaimed get an inferred lease, ids that somebody pushed
-- there in vain are taken out, and the list is put in order.
--   args.raw_us    how long one that took a task may stay silent
-- Outcome: { taken… }, { thrown out… }
-- @include _take.lua

local queue, offered = key.taskQueue(), key.offeredTasks()
local listed = public('LRANGE', queue, 0, -1)
local there, foreign, doubled = {}, {}, false
for _, id in ipairs(listed) do
  if there[id] then doubled = true end
  there[id] = true
  if not redis.call('ZSCORE', offered, id) then foreign[#foreign + 1] = id end
end
-- Agents take one each. So many at once, and not one left, were not taken: somebody cleared the list, and it is filled again.
local MANY = 32
local taken, was_offered = {}, redis.call('ZRANGE', offered, 0, -1)
local cleared = #listed == 0 and #was_offered > MANY
for _, id in ipairs(was_offered) do
  if not there[id] and not cleared then
    local t = load(id)
    redis.call('ZREM', offered, id)
    if t and t.status == 'pending' then
      withdraw(t)
      infer(t, 'raw.' .. t.task, 'assigned', args.raw_us)
      taken[#taken + 1] = id
    end
  end
end

-- The list as it should be; written anew only if it is not.
local wanted = wanted_list()
local now_listed = redis.call('LRANGE', queue, 0, -1)
local same = not doubled and #foreign == 0 and (#now_listed == #wanted or #now_listed < #wanted and is_long_enough(#now_listed))
for at = 1, #now_listed do
  if now_listed[#now_listed + 1 - at] ~= wanted[at] then same = false end
end
if not same then
  redis.call('DEL', queue, offered)
  for _, id in ipairs(wanted) do
    redis.call('LPUSH', queue, id)
    redis.call('ZADD', offered, whole_number(now), id)
  end
end
if redis.call('TYPE', key.progress()).ok == 'hash' and redis.call('HLEN', key.progress()) ~= 6 then redis.call('DEL', key.progress()) end
write_progress()
return { taken, foreign }
