-- A task has ended for good without success, and what that means for those that wait for it. Each edge once, no recursion:
-- a chain of ten thousand fails like any other.
-- @include _work.lua
-- @include _review.lua

local function fail_for_good(t, from, result, reason, payload)
  because = reason
  if from == 'APPLYING' then owe_rollback(t) end
  move(t, from, 'CANCELLED')
  if from == 'REVIEWING' then close_requests(t, 'SUPERSEDED', t.agent, reason) end
  redis.call('HSET', key.taskExecution(t.ade), 'completed_at', now_text, 'result', result, 'error', reason)
  redis.call('EXPIRE', key.taskExecution(t.ade), 7776000)
  redis.call('ZREM', key.delayedTasks(), t.task)
  if t.status == 'pending' then withdraw(t) end
  set_status(t, 'failed')
  note(t, 'reason', reason)
  if result ~= 'cancelled' then redis.call('ZADD', key.deadTasks(), seconds(now), t.task) end
  say(result == 'cancelled' and 'task_cancelled' or 'task_failed', t, t.agent, payload, result == 'cancelled' and 'cancelled' or 'failed')
end

local function fail_with(t, cause)
  local reason = 'its dependency ' .. cause .. ' failed'
  fail_for_good(t, redis.call('GET', key.taskState(t.ade)) or 'APPROVED', 'failure', reason, '{"reason":' .. quoted(reason) .. '}')
end

-- The policy is that of the task that waits: block (nothing happens), skip (do without) or fail (with it, and so on).
local function fall_out(task)
  local failing, at = { task }, 1
  while failing[at] do
    local cause = failing[at]
    at = at + 1
    for _, id in ipairs(redis.call('SMEMBERS', key.dependents(cause))) do
      local policy = redis.call('HGET', key.taskRecord(id), 'if_failed')
      if policy == 'skip' then
        local open = key.openDependencies(id)
        if redis.call('SREM', open, cause) == 1 and redis.call('EXISTS', open) == 0 then
          local t = load(id)
          if t.status == 'blocked' then settle(t) end
        end
      elseif policy == 'fail' then
        local t = load(id)
        if t.status == 'blocked' or t.status == 'pending' then
          fail_with(t, cause)
          failing[#failing + 1] = id
        end
      end
    end
  end
end

-- The same for a task that comes to wait for what had failed before.
local function fall_with(t, deps)
  if t.if_failed ~= 'fail' or t.status ~= 'blocked' and t.status ~= 'pending' then return end
  for _, need in ipairs(deps) do
    if redis.call('HGET', key.taskRecord(need), 'status') == 'failed' then
      fail_with(t, need)
      return fall_out(t.task)
    end
  end
end

-- Refused at the gate, which is an end as well: who waits for it learns so.
local function reject(t, from, reason, by)
  move(t, from, 'REJECTED')
  close_requests(t, 'SUPERSEDED', by, 'it was rejected')
  if t.status == 'pending' then withdraw(t) end
  redis.call('ZREM', key.delayedTasks(), t.task)
  set_status(t, 'failed')
  note(t, 'reason', reason, 'gated', '')
  say('task_rejected', t, by, '{"reason":' .. quoted(reason) .. ',"by":' .. quoted(by) .. '}', 'rejected')
  fall_out(t.task)
end

-- A plain client that reported it as the contract says has written it there already.
local function log_error(task, text, by)
  local line = task .. ': ' .. text
  if string.sub(by, 1, 4) == 'raw.' and public('LPOS', key.errorList(), line, 'MAXLEN', 100) then return end
  public('LPUSH', key.errorList(), line)
  redis.call('LTRIM', key.errorList(), 0, 999)
end

-- One attempt less; or none left. Answers when it may be tried again, or nil if it was given up.
local function spend_attempt(t, reason, delay_us, most)
  local attempts = t.attempts + 1
  note(t, 'attempts', attempts, 'reason', reason)
  redis.call('HSET', key.taskExecution(t.ade), 'retry_count', attempts, 'error', reason)
  if attempts >= most then return nil end
  return delay_us * 2 ^ (attempts - 1)
end

local function back_off(t, delay_us)
  if delay_us > 0 then redis.call('ZADD', key.delayedTasks(), seconds(now + delay_us), t.task) end
  return_task(t)
end
