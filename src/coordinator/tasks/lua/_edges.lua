-- Whether a task with this policy waits for another one: until that is done, or has failed where it can do without.
local function waits_for(if_failed, need)
  local status = redis.call('HGET', key.taskRecord(need), 'status')
  return status ~= 'completed' and not (status == 'failed' and if_failed == 'skip')
end
