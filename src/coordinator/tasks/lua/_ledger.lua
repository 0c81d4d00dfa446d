-- What a usual claim or completion leaves for later. The locks, the agent's place, the result, the end of a task and what became ready are
-- written in the step; what follows from them, the record, the indexes, the statistics, the agent's row, events and audit, is written from
-- what the same step leaves here. Whoever is about to look at any of it writes up what is left first: every script over tasks does.
-- A claim waits a little longer than a completion: one that has ended by then was never in an index, and is not entered now.
--   args.head, args.window, args.exclusive    as for every script over tasks, see _task.lua
--   key.openedTasks()    task → its claim: now source task agent lock_id token agent_type lane born attempts due look actor
--                        token_before lease_class deadline origin, its place among those of its moment, then type, id, token and mark of each resource
--   key.ledger()         what one script completed: now, source, and of each task its claim as it stood in the former, how many it
--                        released, whether a plain client did it, the actor; or, if that was written up, false, the next three, and task
--                        agent lock_id token born origin, then type and id of each resource
-- What is foreign at a name gives way, as in _public.lua: what is taken off here must not be lost half-way.
-- @include _public.lua
-- @include _window.lua
-- Of a move: its event in the lifecycle, and that for agents and people; the station it leads to; its audit row.
local CLAIM = { 'task:state_changed', '","from":"APPROVED","to":"APPLYING"}', 'task_assigned', 'working',
  '","action":"claim","from":"APPROVED","to":"APPLYING","subject":"task:', '","actor":' }
local COMPLETION = { 'task:completed', '","from":"APPLYING","to":"COMPLETED"}', 'task_completed', 'done',
  '","action":"complete","from":"APPLYING","to":"COMPLETED","subject":"task:', '","actor":' }

--   most      how many entries of the ledger
--   young     how long a claim may wait for its completion, in µs
-- Answers with how many claims and completions were written up, and whether something is left.
local function write_up(most, young)
  local ledger, opened = key.ledger(), key.openedTasks()
  local entries, claims = redis.call('LPOP', ledger, most) or {}, redis.call('HVALS', opened)
  if not entries[1] and not claims[1] then return 0 end
  local rows, moves, claimed, completed, released, kept = {}, {}, 0, 0, 0, 0
  local gone, gone_of, agents, names, statuses = {}, {}, {}, {}, {}
  -- Members, or scores and members, of sorted sets; what of a set or hash is entered (a value) or taken out (false).
  local approved, applied, applying, done, taken, running, registered, of_type = {}, {}, {}, {}, {}, {}, {}, {}

  local function of(lists, name)
    local list = lists[name]
    if not list then
      list = {}
      lists[name] = list
    end
    return list
  end
  local function agent_of(name)
    local agent = agents[name]
    if not agent then
      agent = { locks = {}, places = {} }
      agents[name] = agent
      names[#names + 1] = name
    end
    return agent
  end
  -- Enters a lock in the indexes, or takes it out.
  local function index_lock(lock, type, agent, look)
    registered[lock], agent.locks[lock] = look, look and true
    if type then of(of_type, type)[lock] = look and true end
  end
  -- The fence outlives the lock, and says who had it. What was granted or given back since is not overwritten.
  local function seal(fence, channel, token, name, lock_id)
    local last = redis.call('HMGET', fence, 'token', 'last_lock_id')
    if (tonumber(last[1]) or 0) >= tonumber(token) then return end
    if last[2] == lock_id then
      redis.call('HSET', fence, 'token', token)
    else
      redis.call('HSET', fence, 'token', token, 'state', 'held', 'last_holder', name, 'last_lock_id', lock_id)
      redis.call('PUBLISH', channel, 'acquired:' .. name)
    end
  end
  local function note_state(task, ade, status, state)
    redis.call('SET', key.taskState(ade), state, 'KEEPTTL')
    if status ~= 'completed' then statuses[#statuses + 1], statuses[#statuses + 2] = key.taskStatus(task), status end
  end
  -- What agents and people see happen, the stream of the lifecycle, and the audit: of one move.
  local function tell_of(told)
    local task, ade, name, at, source, move, payload = told[2], told[3], told[4], told[5], told[6], told[7], told[10]
    redis.call('XADD', key.events('task'), 'MAXLEN', '~', ctx.keep, '*', 'event', move[1], 'timestamp', at,
      'payload', '{"task_id":"' .. ade .. move[2], 'source', source)
    public('XADD', key.coordinationEvents(), 'MAXLEN', '~', ctx.keep, '*', 'event_type', move[3], 'task_id', task, 'agent_id', name,
      'timestamp', at, 'source', source, 'payload', payload)
    if told[11] == 'prd' then
      redis.call('XADD', key.prdOutbox(), '*', 'event_type', move[3], 'task_id', task, 'agent_id', name, 'timestamp', at,
        'station', move[4], 'payload', payload)
    end
    rows[#rows + 1] = '{"at":"' .. at .. move[5] .. ade .. move[6] .. told[8] .. ',"service":' .. cjson.encode(source) .. ',"agent":"' .. name
      .. '","fencing_token":"' .. told[9] .. '"}'
  end

  -- Of a claim, ended or not: it left the queue, and its agent was there. `status`, `state`: where the task is now.
  local function hand_over(c, at, status, state)
    local task, ade, agent, lane = c[3], args.head .. c[3], agent_of(c[4]), of(gone_of, c[8])
    gone[#gone + 1], lane[#lane + 1], approved[#approved + 1] = task, task, ade
    agent.type, agent.claimed_at = c[7], at
    redis.call('HSET', key.taskRecord(task), 'agent', c[4], 'lock_id', c[5], 'token', c[6], 'claimed_at', at, 'lease_class', c[15],
      'deadline', c[16], 'note', '', 'percent', '', 'status', status)
    if c[1] - c[14] > 86400000000 then redis.call('EXPIRE', key.taskLockFence(ade), '7776000') end
    note_state(task, ade, status, state)
    moves[#moves + 1] = { c[1], task, ade, c[4], at, c[2], CLAIM, c[13], c[6],
      '{"attempt":' .. c[10] + 1 .. ',"lock_id":"' .. c[5] .. '","fencing_token":"' .. c[6] .. '"}', c[17] }
    claimed = claimed + 1
    return ade, agent
  end

  local function end_claim(c, at)
    local began, name = iso_time(c[1]), c[4]
    local ade, agent = hand_over(c, began, 'completed', 'COMPLETED')
    local execution = key.taskExecution(ade)
    public('HSET', key.taskMetadata(ade), 'applying_at', began, 'completed_at', at, 'updated_at', at)
    public('HSET', execution, 'started_at', began, 'agent_id', name, 'retry_count', c[10], 'completed_at', at, 'result', 'success')
    redis.call('EXPIRE', execution, '7776000')
    return c[3], ade, agent, name, c[6], c[9], c[17]
  end
  local function end_task(row, at)
    local task, name, lock_id, token, born = row[5], row[6], row[7], row[8], row[9]
    local ade, agent = args.head .. task, agent_of(name)
    public('HSET', key.taskMetadata(ade), 'completed_at', at, 'updated_at', at)
    public('HSET', key.taskExecution(ade), 'completed_at', at, 'result', 'success')
    note_state(task, ade, 'completed', 'COMPLETED')
    index_lock(key.taskLock(ade), nil, agent, false)
    for place = 11, #row, 2 do index_lock(key.resourceLock(row[place], row[place + 1]), row[place], agent, false) end
    applied[#applied + 1], taken[#taken + 1], agent.places[lock_id] = ade, task, false
    redis.call('HDEL', key.agentClaims(name), task)
    return task, ade, agent, name, token, born, row[10]
  end
  local function read_end(row, us, at, source)
    local task, ade, agent, name, token, born, origin
    if row[1] then
      task, ade, agent, name, token, born, origin = end_claim(cmsgpack.unpack(row[1]), at)
    else
      task, ade, agent, name, token, born, origin = end_task(row, at)
    end
    agent.ended_us = us
    done[#done + 1], done[#done + 2] = born, ade
    moves[#moves + 1] = { us, task, ade, name, at, source, COMPLETION, row[4], token,
      '{"released":' .. row[2] .. (row[3] and ',"raw":true}' or '}'), origin }
    completed, released = completed + 1, released + row[2]
  end
  for _, text in ipairs(entries) do
    local entry = cmsgpack.unpack(text)
    local us = entry[1]
    local at = iso_time(us)
    for place = 3, #entry do read_end(entry[place], us, at, entry[2]) end
  end

  local function begin_task(c)
    local at, task = iso_time(c[1]), c[3]
    seal(key.taskLockFence(args.head .. task), key.taskLockChannel(args.head .. task), c[6], c[4], c[5])
    local ade, agent = hand_over(c, at, 'assigned', 'APPLYING')
    public('HSET', key.taskMetadata(ade), 'applying_at', at, 'updated_at', at)
    public('HSET', key.taskExecution(ade), 'started_at', at, 'agent_id', c[4], 'retry_count', c[10])
    redis.call('EXPIRE', key.taskExecution(ade), '7776000')
    local name, lock_id = c[4], c[5]
    index_lock(key.taskLock(ade), nil, agent, c[12])
    for place = 19, #c, 4 do
      local type, id = c[place], c[place + 1]
      index_lock(key.resourceLock(type, id), type, agent, c[12])
      seal(key.resourceLockFence(type, id), key.resourceLockChannel(type, id), c[place + 2], name, lock_id)
    end
    agent.places[c[5]] = c[6]
    redis.call('HSET', key.agentClaims(name), task, lock_id)
    -- Its latest claim is what it works on; after an end, any that is left.
    if c[1] > (agent.ended_us or 0) then agent.task = task end
    applying[#applying + 1], applying[#applying + 2], running[#running + 1], running[#running + 2] = c[9], ade, c[11], task
  end
  local old = {}
  for _, text in ipairs(claims) do
    local c = cmsgpack.unpack(text)
    if now - c[1] < young then kept = kept + 1 else old[#old + 1] = c end
  end
  table.sort(old, function(one, other) return one[1] < other[1] or one[1] == other[1] and one[18] < other[18] end)
  for _, c in ipairs(old) do begin_task(c) end
  if kept == 0 then redis.call('DEL', opened) else for _, c in ipairs(old) do redis.call('HDEL', opened, c[3]) end end
  if claimed + completed == 0 then return 0, kept end
  -- In the order in which they happened, those of one moment in the order in which they were asked for.
  for at, told in ipairs(moves) do told[12] = at end
  table.sort(moves, function(one, other) return one[1] < other[1] or one[1] == other[1] and one[12] < other[12] end)
  for _, told in ipairs(moves) do tell_of(told) end

  local MANY = 1000
  local function write_all(command, name, values)
    for from = 1, #values, MANY do public(command, name, unpack(values, from, math.min(#values, from + MANY - 1))) end
  end
  local function write_changes(enter, remove, name, changes)
    local added, removed = {}, {}
    for member, value in pairs(changes) do
      if not value then
        removed[#removed + 1] = member
      else
        if value ~= true then added[#added + 1] = value end
        added[#added + 1] = member
      end
    end
    write_all(enter, name, added)
    write_all(remove, name, removed)
  end
  -- Somebody else may have such a lock by now, and has entered it: it stays.
  local function keep_held(changes)
    for lock, value in pairs(changes) do
      if not value and redis.call('EXISTS', lock) == 1 then changes[lock] = nil end
    end
  end

  for from = 1, #statuses, MANY do redis.call('MSET', unpack(statuses, from, math.min(#statuses, from + MANY - 1))) end
  write_all('ZREM', key.tasksByState('APPROVED'), approved)
  write_all('ZREM', key.tasksByState('APPLYING'), applied)
  write_all('ZADD', key.tasksByState('APPLYING'), applying)
  write_all('ZADD', key.tasksByState('COMPLETED'), done)
  write_all('ZREM', key.runningTasks(), taken)
  write_all('ZADD', key.runningTasks(), running)
  keep_held(registered)
  for type, locks in pairs(of_type) do
    keep_held(locks)
    write_changes('SADD', 'SREM', key.resourceLocks(type), locks)
  end

  -- Answers whether the agent has places taken.
  local function write_places(name, agent)
    local capacity, fence = key.agentCapacity(name), key.agentCapacityFence(name)
    local leases, active = redis.call('ZRANGE', key.agentCapacityLeases(name), '0', '-1', 'WITHSCORES'), 0
    for at = 2, #leases, 2 do
      if tonumber(leases[at]) * 1000000 > now then active = active + 1 end
    end
    if agent.claimed_at then
      public('HSET', capacity, 'active_tasks', active, 'last_heartbeat', agent.claimed_at)
    else
      public('HSET', capacity, 'active_tasks', active)
    end
    local has_changed = false
    for lock_id, token in pairs(agent.places) do
      has_changed = true
      if token then public('HSET', fence, 'lease:' .. lock_id, token) else public('HDEL', fence, 'lease:' .. lock_id) end
    end
    if has_changed then registered[capacity] = leases[2] or false end
    return leases[1]
  end
  local function write_agent(name, agent)
    local claims_of, row = key.agentClaims(name), key.agent(name)
    write_changes('SADD', 'SREM', key.agentLocks(name), agent.locks)
    local has_places = write_places(name, agent)
    if redis.call('EXPIRE', row, '86400') == 0 then
      if not agent.claimed_at then return end
      public('HSET', row, 'started_at', agent.claimed_at)
      redis.call('EXPIRE', row, '86400')
      redis.call('SADD', key.knownAgents(), name)
    end
    local task = agent.task or has_places and redis.call('HKEYS', claims_of)[1]
    if agent.type then
      public('HSET', row, 'agent_type', agent.type, 'current_task', task or '', 'status', task and 'working' or 'idle')
    else
      public('HSET', row, 'current_task', task or '', 'status', task and 'working' or 'idle')
    end
  end
  for _, name in ipairs(names) do write_agent(name, agents[name]) end
  write_changes('ZADD', 'ZREM', key.lockRegistry(), registered)

  if gone[1] then
    for lane, members in pairs(gone_of) do write_all('ZREM', key.readyTasks(lane), members) end
    write_all('ZREM', key.readyOrder(), gone)
    write_all('ZREM', key.offeredTasks(), gone)
    if args.exclusive ~= 1 then refill() end
  end
  local counts = key.taskCounts()
  local c = redis.call('HMGET', counts, 'total', 'pending', 'in_progress', 'completed', 'failed', 'blocked')
  local pending, in_progress = (c[2] or 0) - claimed + released, (c[3] or 0) + claimed - completed
  local ended, blocked = (c[4] or 0) + completed, (c[6] or 0) - released
  redis.call('HSET', counts, 'pending', pending, 'in_progress', in_progress, 'completed', ended, 'blocked', blocked)
  public('HSET', key.progress(), 'total', c[1] or '0', 'pending', pending, 'in_progress', in_progress, 'completed', ended,
    'failed', c[5] or '0', 'blocked', blocked)
  redis.call('XADD', key.auditOutbox(), '*', 'rows', '[' .. table.concat(rows, ',') .. ']')
  return claimed + completed, kept
end
