-- Enter all tasks anew into the list of them, in the order of their source, with what follows from their ids alone. All in one step:
-- a list of half of them would be taken for all.
--   args.tasks    [id, spelling]…; see aliases.ts
-- Outcome: how many there are; 0 also if the list is as it should be by now
local known, spellings, parked = key.knownTasks(), key.spellings(), key.parkedOrder()
local kind = redis.call('TYPE', known).ok
if kind == 'zset' or kind == 'none' then return 0 end
redis.call('DEL', known, spellings, parked)
local TWO_32, found = 4294967296, 0
for _, one in ipairs(args.tasks) do
  local id, spelling = one[1], one[2]
  local v = redis.call('HMGET', key.taskRecord(id), 'score', 'parked')
  if v[1] then
    found = found + 1
    redis.call('ZADD', known, tonumber(v[1]) % TWO_32, id)
    -- What two tasks may be called names neither.
    if redis.call('HSETNX', spellings, spelling, id) == 0 then redis.call('HSET', spellings, spelling, '') end
    if v[2] and v[2] ~= '' then redis.call('ZADD', parked, v[1], id) end
  end
end
return found
