-- Hand out the best ready tasks, as claim.lua does, to agents that are known, have a free place, and ask for no task by name under
-- a lock_id that is new. Usual is the task at the end of the public list, if the agent may take it and nothing stands in the way.
--   args.claims    per request seven texts: agent, lock_id, agent_type, lease_class, lanes and capabilities (each word between spaces), actor
--   args.leases    lease_class → lease_us, ends_us (with its grace)
-- Outcome: for each request CLAIMED … or NONE ready, as claim.lua answers, or UNUSUAL
-- @include _usual.lua
-- @include ../../../redis/lua/_audit.lua
local function whole_number(n)
  return string.format('%d', n)
end
local function seconds(us)
  return string.format('%d.%06d', us / 1000000, us % 1000000)
end
-- @include _window.lua
-- @include _collision.lua

local call, DAY, DAYS_90 = redis.call, '86400', '7776000'
local queue, order = key.taskQueue(), key.readyOrder()
-- Nothing is usual while something is paused, or may be kept for whoever works on its parent.
local paused = call('EXISTS', key.pauses(), key.parentTasks()) > 0
local lock_events, task_events, own_events = key.events('lock'), key.events('task'), key.coordinationEvents()
local claimed = 0
-- Members, or scores and members, for one command at the end.
local gone, gone_of, running, approved, applying, registered, typed = {}, {}, {}, {}, {}, {}, {}
local function add(list, score, member)
  local at = #list
  list[at + 1], list[at + 2] = score, member
end
local function add_to(lists, name, member)
  local list = lists[name]
  if not list then
    list = {}
    lists[name] = list
  end
  list[#list + 1] = member
end

local function fits(requires, capabilities)
  if not requires or requires == '' then return true end
  for _, capability in ipairs(cjson.decode(requires)) do
    if not string.find(capabilities, ' ' .. capability .. ' ', 1, true) then return false end
  end
  return true
end

-- The token of a lock's next grant: it rises even if the clock went back or the last grant was in this µs. Nil if its key ended with
-- its holder and nobody has noticed yet.
local function next_token(fence)
  local last = call('HMGET', fence, 'token', 'state')
  if last[2] == 'held' then return nil end
  local before = last[1] and tonumber(last[1]) or 0
  return whole_number(now > before and now or before + 1), before
end

-- A place among those of the agent. Its token fences nothing: that of the task will do.
local function take_place(by, capacity, taken, token)
  local leases = key.agentCapacityLeases(by.agent)
  call('ZADD', leases, by.ends, by.lock_id)
  call('HSET', capacity, 'active_tasks', taken + 1, 'last_heartbeat', now_text)
  call('HSET', key.agentCapacityFence(by.agent), 'lease:' .. by.lock_id, token)
  add(registered, taken == 0 and by.look or call('ZRANGE', leases, '0', '0', 'WITHSCORES')[2], capacity)
end

local function enter_agent(by, task)
  local row = key.agent(by.agent)
  if call('EXPIRE', row, DAY) == 0 then
    public('HSET', row, 'started_at', now_text)
    call('EXPIRE', row, DAY)
    call('SADD', key.knownAgents(), by.agent)
  end
  public('HSET', row, 'agent_type', by.agent_type, 'current_task', task, 'status', 'working')
  call('HSET', key.agentClaims(by.agent), task, by.lock_id)
end

-- Takes the task that was popped, or answers nil with nothing written.
local function take(by, task, capacity, taken)
  local record = key.taskRecord(task)
  local r = call('HMGET', record, 'status', 'parked', 'lane', 'requires', 'claims', 'timeout', 'attempts', 'born', 'origin', 'gated')
  local lane = r[3]
  if r[1] ~= 'pending' or r[2] and r[2] ~= '' or r[10] and r[10] ~= '' or not string.find(by.lanes, ' ' .. lane .. ' ', 1, true) or not fits(r[4], by.capabilities) then return nil end
  local ade, claims = args.head .. task, usual_claims(r[5])
  local state = key.taskState(ade)
  if not claims or call('GET', state) ~= 'APPROVED' then return nil end

  -- Nobody has any of the locks, or waits for one; nobody works on anything above or beneath.
  local lock, fence = key.taskLock(ade), key.taskLockFence(ade)
  local locks, there = { lock }, { lock, key.taskLockQueue(ade) }
  for at, claim in ipairs(claims) do
    local resource = key.resourceLock(claim[1], claim[2])
    locks[at + 1] = resource
    there[#there + 1], there[#there + 2] = resource, key.resourceLockQueue(claim[1], claim[2])
  end
  if call('EXISTS', unpack(there)) > 0 or claims[1] and collision(claims, task) then return nil end
  local token, before = next_token(fence)
  if not token then return nil end
  local fences, tokens = {}, {}
  for at, claim in ipairs(claims) do
    fences[at] = key.resourceLockFence(claim[1], claim[2])
    tokens[at] = next_token(fences[at])
    if not tokens[at] then return nil end
  end

  -- The resources' locks, then the task's own.
  local agent, lock_id, class, names = by.agent, by.lock_id, by.lease_class, ''
  for at, claim in ipairs(claims) do
    local resource = locks[at + 1]
    call('HSET', resource, 'exclusive_holder', agent, 'acquired_at', now_text, 'expires_at', by.expires, 'purpose', 'task',
      'heartbeat_count', '0', 'queue_length', '0', 'lock_id', lock_id, 'fencing_token', tokens[at], 'mode', 'exclusive',
      class == 'agent' and 'lease_class' or 'mode', class == 'agent' and 'agent' or 'exclusive')
    call('PEXPIRE', resource, by.ttl)
    call('HSET', fences[at], 'token', tokens[at], 'state', 'held', 'last_holder', agent, 'last_lock_id', lock_id)
    call('PUBLISH', key.resourceLockChannel(claim[1], claim[2]), 'acquired:' .. agent)
    call('ZADD', key.heldExclusive(), '0', claim[4] .. '\0' .. task)
    add(registered, by.look, resource)
    add_to(typed, claim[1], resource)
    names = names .. string.sub(resource, 10) .. '","'
  end
  call('HSET', lock, 'holder_agent_id', agent, 'acquired_at', now_text, 'expires_at', by.expires, 'purpose', 'task', 'heartbeat_count', '0',
    'queue_length', '0', 'lock_id', lock_id, 'fencing_token', token, class == 'agent' and 'lease_class' or 'purpose',
    class == 'agent' and 'agent' or 'task')
  call('PEXPIRE', lock, by.ttl)
  call('HSET', fence, 'token', token, 'state', 'held', 'last_holder', agent, 'last_lock_id', lock_id)
  if now - before > 86400000000 then call('EXPIRE', fence, DAYS_90) end
  call('PUBLISH', key.taskLockChannel(ade), 'acquired:' .. agent)
  add(registered, by.look, lock)
  call('SADD', key.agentLocks(agent), unpack(locks))
  take_place(by, capacity, taken, token)
  call('XADD', lock_events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:acquired', 'timestamp', now_text, 'payload',
    '{"lock":"' .. string.sub(lock, 10) .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '","fencing_token":"' .. token
      .. '","with":["' .. names .. 'agent:' .. agent .. '"]}', 'source', ctx.source)

  -- The task: out of the queue, into someone's hands, from APPROVED to APPLYING.
  local attempts, timeout, due, deadline = r[7] or '0', tonumber(r[6]) or 0, by.ends_at, ''
  if timeout > 0 then
    local times_out = now + timeout * 1000000
    deadline = seconds(times_out)
    if times_out < now + by.ends_us then due = whole_number(times_out) end
  end
  gone[#gone + 1], approved[#approved + 1] = task, ade
  add_to(gone_of, lane, task)
  add(running, due, task)
  add(applying, r[8], ade)
  call('HSET', record, 'agent', agent, 'lock_id', lock_id, 'token', token, 'claimed_at', now_text, 'lease_class', class,
    'deadline', deadline, 'note', '', 'percent', '', 'status', 'assigned')
  call('SET', key.taskStatus(task), 'assigned')
  call('SET', state, 'APPLYING', 'KEEPTTL')
  call('HSET', key.taskMetadata(ade), 'applying_at', now_text, 'updated_at', now_text)
  call('XADD', task_events, 'MAXLEN', '~', ctx.keep, '*', 'event', 'task:state_changed', 'timestamp', now_text,
    'payload', '{"task_id":"' .. ade .. '","from":"APPROVED","to":"APPLYING"}', 'source', ctx.source)
  audit_by(by.actor, now_text, 'claim', 'task:' .. ade, 'APPROVED', 'APPLYING', 'agent', agent, 'fencing_token', token,
    'reason', '')
  local execution = key.taskExecution(ade)
  call('HSET', execution, 'started_at', now_text, 'agent_id', agent, 'retry_count', attempts)
  call('EXPIRE', execution, DAYS_90)
  enter_agent(by, task)
  local attempt = string.format('%d', attempts + 1)
  local payload = '{"attempt":' .. attempt .. ',"lock_id":"' .. lock_id .. '","fencing_token":"' .. token .. '"}'
  public('XADD', own_events, 'MAXLEN', '~', ctx.keep, '*', 'event_type', 'task_assigned', 'task_id', task, 'agent_id', agent,
    'timestamp', now_text, 'source', ctx.source, 'payload', payload)
  if r[9] == 'prd' then
    call('XADD', key.prdOutbox(), '*', 'event_type', 'task_assigned', 'task_id', task, 'agent_id', agent, 'timestamp', now_text,
      'station', 'working', 'payload', payload)
  end
  claimed = claimed + 1
  return { 'CLAIMED', '0', task, token, now_text, by.expires, attempt, call('GET', key.taskData(ade)) or '{}', lock_id }
end

-- When a lease ends: for people; with its grace as scores, in seconds and in µs; the milliseconds until then; and when to look after
-- it, in whole seconds, which a small sorted set compares much faster. Most who ask together ask for the same.
local texts = {}
local function lease_texts(by)
  local found = texts[by.lease_class]
  if not found then
    local ends = now + by.ends_us
    found = { iso_time(now + by.lease_us), seconds(ends), whole_number(ends), whole_number(math.ceil(by.ends_us / 1000)),
      whole_number(math.ceil(ends / 1000000)) }
    texts[by.lease_class] = found
  end
  return unpack(found)
end

local function claim(by)
  local capacity = key.agentCapacity(by.agent)
  local limit = call('HMGET', capacity, 'max_tasks', 'status')
  if limit[2] ~= 'active' or paused then return UNUSUAL end
  -- Those of silent holders count, too, as long as nobody has looked: an agent that seems full is looked at closely.
  local taken = call('ZCARD', key.agentCapacityLeases(by.agent))
  if taken >= tonumber(limit[1]) then return UNUSUAL end
  local task = call('RPOP', queue)
  if not task then return call('ZCARD', order) == claimed and { 'NONE', '0', '0' } or UNUSUAL end
  by.expires, by.ends, by.ends_at, by.ttl, by.look = lease_texts(by)
  local found = take(by, task, capacity, taken)
  if found then return found end
  call('RPUSH', queue, task)
  return UNUSUAL
end

-- One request that meets with an error (a key of a foreign type) must not take along what others have gathered.
local replies = {}
local asked = args.claims
for at = 1, #asked, 7 do
  local class = asked[at + 3]
  local by = { agent = asked[at], lock_id = asked[at + 1], agent_type = asked[at + 2], lease_class = class, lanes = asked[at + 4],
    capabilities = asked[at + 5], actor = asked[at + 6], lease_us = args.leases[class][1], ends_us = args.leases[class][2], expires = '', ends = '', ends_at = '', ttl = '',
    look = '' }
  local done, reply = pcall(claim, by)
  replies[#replies + 1] = done and reply or UNUSUAL
end
if claimed > 0 then
  for lane, tasks in pairs(gone_of) do write_all('ZREM', key.readyTasks(lane), tasks) end
  write_all('ZREM', order, gone)
  write_all('ZREM', key.offeredTasks(), gone)
  write_all('ZADD', key.runningTasks(), running)
  write_all('ZREM', key.tasksByState('APPROVED'), approved)
  write_all('ZADD', key.tasksByState('APPLYING'), applying)
  write_all('ZADD', key.lockRegistry(), registered)
  for type, locks in pairs(typed) do write_all('SADD', key.resourceLocks(type), locks) end
  refill()
  local counts = key.taskCounts()
  local c = call('HMGET', counts, 'total', 'pending', 'in_progress', 'completed', 'failed', 'blocked')
  local pending, in_progress = string.format('%d', (c[2] or 0) - claimed), string.format('%d', (c[3] or 0) + claimed)
  call('HSET', counts, 'pending', pending, 'in_progress', in_progress)
  public('HSET', key.progress(), 'total', c[1] or '0', 'pending', pending, 'in_progress', in_progress, 'completed', c[4] or '0',
    'failed', c[5] or '0', 'blocked', c[6] or '0')
end
return replies
