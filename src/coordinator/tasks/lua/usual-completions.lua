-- End tasks with success, as complete.lua does, for those who hold all that they took and for whose locks nobody waits in line.
-- Whoever waited for a task to complete is released in the same step.
--   args.completions    per request seven texts: task, agent, lock_id, token, rest, say_raw, as complete.lua takes them, and the actor
-- Outcome: for each request COMPLETED …, as complete.lua answers, or UNUSUAL
-- @include _ready.lua
-- @include _usual.lua

local completed = 0
local ended, applied, done_at, unregistered, typed, marks = {}, {}, {}, {}, {}, {}

local function is_owner(given, r)
  return r[2] == given.agent and (given.lock_id == '' or given.lock_id == r[3]) and (given.token == '' or given.token == r[4])
end

-- The locks of the task, if they are all still its own and nobody waits for one, for a place of the agent, or for its end.
local function own_locks(task, ade, agent, lock_id, claims)
  local locks, lines = { key.taskLock(ade) }, { 'EXISTS', key.parkedTasks(task), key.agentCapacityQueue(agent), key.taskLockQueue(ade) }
  for at, claim in ipairs(claims) do
    locks[at + 1], lines[at + 4] = key.resourceLock(claim[1], claim[2]), key.resourceLockQueue(claim[1], claim[2])
  end
  for at, lock in ipairs(locks) do
    local held = redis.call('HMGET', lock, 'lock_id', at == 1 and 'holder_agent_id' or 'exclusive_holder')
    if held[1] ~= lock_id or held[2] ~= agent then return nil end
  end
  return redis.call(unpack(lines)) == 0 and locks or nil
end

local function free(lock, fence, channel, agent, lock_id)
  redis.call('HSET', fence, 'state', 'released', 'last_lock_id', lock_id)
  redis.call('PUBLISH', channel, 'released:' .. agent)
  unregistered[#unregistered + 1] = lock
end

local function free_all(task, ade, agent, lock_id, claims, locks)
  redis.call('DEL', unpack(locks))
  redis.call('SREM', key.agentLocks(agent), unpack(locks))
  free(locks[1], key.taskLockFence(ade), key.taskLockChannel(ade), agent, lock_id)
  for at, claim in ipairs(claims) do
    local type, id, lock = claim[1], claim[2], locks[at + 1]
    free(lock, key.resourceLockFence(type, id), key.resourceLockChannel(type, id), agent, lock_id)
    marks[#marks + 1] = claim[4] .. '\0' .. task
    typed[type] = typed[type] or {}
    typed[type][#typed[type] + 1] = lock
  end
end

-- Gives the place back. Answers whether the agent has others.
local function free_place(agent, lock_id)
  local capacity, leases = key.agentCapacity(agent), key.agentCapacityLeases(agent)
  redis.call('ZREM', leases, lock_id)
  redis.call('HDEL', key.agentCapacityFence(agent), 'lease:' .. lock_id)
  local left = redis.call('ZRANGE', leases, '0', '-1', 'WITHSCORES')
  local active = 0
  for at = 2, #left, 2 do
    if tonumber(left[at]) * 1000000 > now then active = active + 1 end
  end
  redis.call('HSET', capacity, 'active_tasks', active)
  if left[2] then
    redis.call('ZADD', key.lockRegistry(), left[2], capacity)
  else
    unregistered[#unregistered + 1] = capacity
  end
  return left[2] ~= nil
end

local function leave_agent(agent, task, has_others)
  redis.call('HDEL', key.agentClaims(agent), task)
  local row = key.agent(agent)
  if redis.call('EXPIRE', row, 86400) == 0 then return end
  local other = has_others and redis.call('HKEYS', key.agentClaims(agent))[1]
  public('HSET', row, 'current_task', other or '', 'status', other and 'working' or 'idle')
end

local function complete(given)
  local task, ade = given.task, args.head .. given.task
  local r = redis.call('HMGET', key.taskRecord(task), 'status', 'agent', 'lock_id', 'token', 'claims', 'claimed_at', 'born', 'origin')
  if r[1] ~= 'assigned' and r[1] ~= 'in_progress' or not is_owner(given, r) then return UNUSUAL end
  local agent, lock_id, claims = r[2], r[3], usual_claims(r[5])
  local locks = claims and own_locks(task, ade, agent, lock_id, claims)
  if not locks or not redis.call('ZSCORE', key.agentCapacityLeases(agent), lock_id) then return UNUSUAL end

  redis.call('SET', key.taskResult(task), '{"task_id":"' .. task .. '","agent_id":"' .. agent .. '","started_at":"' .. r[6]
    .. '","completed_at":"' .. now_text .. '",' .. given.rest)
  free_all(task, ade, agent, lock_id, claims, locks)
  local has_others = free_place(agent, lock_id)
  local names = {}
  for at = 2, #locks do names[at - 1] = string.sub(locks[at], 10) .. '","' end
  redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:released', 'timestamp', now_text, 'payload',
    '{"lock":"' .. string.sub(locks[1], 10) .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '","with":["' .. table.concat(names)
      .. 'agent:' .. agent .. '"]}', 'source', ctx.source)
  leave_agent(agent, task, has_others)

  redis.call('SET', key.taskStatus(task), 'completed')
  redis.call('HSET', key.taskRecord(task), 'status', 'completed')
  redis.call('SET', key.taskState(ade), 'COMPLETED', 'KEEPTTL')
  redis.call('HSET', key.taskMetadata(ade), 'completed_at', now_text, 'updated_at', now_text)
  redis.call('XADD', key.events('task'), 'MAXLEN', '~', ctx.keep, '*', 'event', 'task:completed', 'timestamp', now_text,
    'payload', '{"task_id":"' .. ade .. '","from":"APPLYING","to":"COMPLETED"}', 'source', ctx.source)
  audit_by(given.actor, now_text, 'complete', 'task:' .. ade, 'APPLYING', 'COMPLETED', 'agent', agent,
    'fencing_token', r[4] or '', 'reason', '')
  redis.call('HSET', key.taskExecution(ade), 'completed_at', now_text, 'result', 'success')
  ended[#ended + 1], applied[#applied + 1] = task, ade
  done_at[#done_at + 1], done_at[#done_at + 2] = r[7], ade
  count(r[1], -1)
  count('completed', 1)
  local released = release_dependents(task)
  say('task_completed', { task = task, origin = r[8], status = 'completed' }, agent, '{"released":' .. #released .. (given.is_raw and ',"raw":true}' or '}'))
  completed = completed + 1
  return { 'COMPLETED', now_text, unpack(released, 1, math.min(#released, 1000)) }
end

-- One request that meets with an error (a key of a foreign type) must not take along what others have gathered.
local replies = {}
local asked = args.completions
for at = 1, #asked, 7 do
  local given = { task = asked[at], agent = asked[at + 1], lock_id = asked[at + 2], token = asked[at + 3], rest = asked[at + 4],
    is_raw = asked[at + 5] == '1', actor = asked[at + 6] }
  local done, reply = pcall(complete, given)
  replies[#replies + 1] = done and reply or UNUSUAL
end
if completed > 0 then
  write_all('ZREM', key.runningTasks(), ended)
  write_all('ZREM', key.tasksByState('APPLYING'), applied)
  write_all('ZADD', key.tasksByState('COMPLETED'), done_at)
  write_all('ZREM', key.lockRegistry(), unregistered)
  write_all('ZREM', key.heldExclusive(), marks)
  for type, locks in pairs(typed) do write_all('SREM', key.resourceLocks(type), locks) end
  write_progress()
end
return replies
