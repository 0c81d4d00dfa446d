-- What a usual claim or completion leaves for later. The locks, the agent's place, the result, the end of a task and what became ready are
-- written in the step; what follows from them, the record, the indexes, the statistics, the agent's row, events and audit, is written from
-- what the same step leaves here. Whoever is about to look at any of it writes up what is left first: every script over tasks does.
-- A claim waits a little longer than a completion: one that has ended by then was never in an index, and is not entered now.
--   args.head, args.window, args.exclusive    as for every script over tasks, see _task.lua
--   key.openedTasks()    task → when it was claimed, in µs, and its claim: 1 source, 2 task, 3 agent, 4 lock_id, 5 token, 6 agent_type, 7 born,
--                        8 attempts, 9 due, 10 when to look after it, 11 actor, 12 token before, 13 lease_class, 14 deadline, 15 origin,
--                        16 its place among those of its moment, 17 when as text; then 18 type, id, token and mark of each resource
--   key.ledger()         what one script completed: when, as number and as text, source, and of each task its claim as it stood in the former,
--                        how many it released, whether a plain client did it, the actor; or, if that was written up, false, the next three, and
--                        task agent lock_id token born origin, then type and id of each resource
-- What is foreign at a name gives way, as in _public.lua: what is taken off here must not be lost half-way.
-- @include _public.lua
-- @include _window.lua
local write_up
-- A script has room for two hundred names: those in here are not for the rest of it.
do
  local MANY, DAY_US = 1000, 86400000000

  local function list_of(lists, name)
    local list = lists[name]
    if not list then
      list = {}
      lists[name] = list
    end
    return list
  end

  local function agent_of(up, name)
    local agent = up.agents[name]
    if not agent then
      agent = { locks = {}, places = {} }
      up.agents[name] = agent
      up.names[#up.names + 1] = name
    end
    return agent
  end

  -- Enters a lock in the indexes, or takes it out.
  local function index_lock(up, lock, type, agent, look)
    up.registered[lock], agent.locks[lock] = look, look and true
    if type then list_of(up.of_type, type)[lock] = look and true end
  end

  -- The fence outlives the lock, and says who had it. What was granted or given back since is not overwritten.
  local function seal_claim(fence, channel, token, name, lock_id)
    local last = redis.call('HMGET', fence, 'token', 'last_lock_id')
    if (tonumber(last[1]) or 0) >= tonumber(token) then return end
    if last[2] == lock_id then
      redis.call('HSET', fence, 'token', token)
    else
      redis.call('HSET', fence, 'token', token, 'state', 'held', 'last_holder', name, 'last_lock_id', lock_id)
      redis.call('PUBLISH', channel, 'acquired:' .. name)
    end
  end

  -- Of a claim, ended or not: its agent was there. `state`: where the task is now.
  local function hand_over(up, c, ade, state)
    local agent, at = agent_of(up, c[3]), #up.claims + 1
    up.claims[at], up.approved[at], agent.type, agent.claimed_at = c, ade, c[6], c[17]
    if c.now - c[12] > DAY_US then redis.call('EXPIRE', key.taskLockFence(ade), '7776000') end
    redis.call('SET', key.taskState(ade), state, 'KEEPTTL')
    return agent
  end

  local function end_claim(up, e, text)
    local claimed, c = cmsgpack.unpack(text)
    local task, name, began, at = c[2], c[3], c[17], e.at
    local ade = args.head .. task
    c.now = claimed
    local agent, execution = hand_over(up, c, ade, 'COMPLETED'), key.taskExecution(ade)
    public('HSET', key.taskMetadata(ade), 'applying_at', began, 'completed_at', at, 'updated_at', at)
    public('HSET', execution, 'started_at', began, 'agent_id', name, 'retry_count', c[8], 'completed_at', at, 'result', 'success')
    redis.call('EXPIRE', execution, '7776000')
    e.task, e.ade, e.agent, e.token, e.born, e.origin = task, ade, name, c[5], c[7], c[15]
    return agent
  end

  local function end_task(up, e, row)
    local task, name, lock_id, at = row[5], row[6], row[7], e.at
    local ade, agent = args.head .. task, agent_of(up, name)
    public('HSET', key.taskMetadata(ade), 'completed_at', at, 'updated_at', at)
    public('HSET', key.taskExecution(ade), 'completed_at', at, 'result', 'success')
    redis.call('SET', key.taskState(ade), 'COMPLETED', 'KEEPTTL')
    index_lock(up, key.taskLock(ade), nil, agent, false)
    for place = 11, #row, 2 do index_lock(up, key.resourceLock(row[place], row[place + 1]), row[place], agent, false) end
    up.applied[#up.applied + 1], up.taken[#up.taken + 1], agent.places[lock_id] = ade, task, false
    redis.call('HDEL', key.agentClaims(name), task)
    e.task, e.ade, e.agent, e.token, e.born, e.origin = task, ade, name, row[8], row[9], row[10]
    return agent
  end

  local function read_ends(up, entries)
    for _, text in ipairs(entries) do
      local entry = cmsgpack.unpack(text)
      for place = 4, #entry do
        local row = entry[place]
        local e = { now = entry[1], at = entry[2], source = entry[3], released = row[2], is_raw = row[3], actor = row[4] }
        local agent = row[1] and end_claim(up, e, row[1]) or end_task(up, e, row)
        agent.ended_us = entry[1]
        up.done[#up.done + 1], up.done[#up.done + 2] = e.born, e.ade
        up.ends[#up.ends + 1], up.released = e, up.released + row[2]
      end
    end
  end

  local function begin_claim(up, c)
    local task, name, lock_id, ade, at = c[2], c[3], c[4], args.head .. c[2], c[17]
    seal_claim(key.taskLockFence(ade), key.taskLockChannel(ade), c[5], name, lock_id)
    local agent, execution = hand_over(up, c, ade, 'APPLYING'), key.taskExecution(ade)
    redis.call('HSET', key.taskRecord(task), 'agent', name, 'lock_id', lock_id, 'token', c[5], 'claimed_at', at, 'lease_class', c[13],
      'deadline', c[14], 'note', '', 'percent', '', 'status', 'assigned')
    public('HSET', key.taskMetadata(ade), 'applying_at', at, 'updated_at', at)
    public('HSET', execution, 'started_at', at, 'agent_id', name, 'retry_count', c[8])
    redis.call('EXPIRE', execution, '7776000')
    index_lock(up, key.taskLock(ade), nil, agent, c[10])
    for place = 18, #c, 4 do
      local type, id = c[place], c[place + 1]
      index_lock(up, key.resourceLock(type, id), type, agent, c[10])
      seal_claim(key.resourceLockFence(type, id), key.resourceLockChannel(type, id), c[place + 2], name, lock_id)
    end
    agent.places[lock_id] = c[5]
    redis.call('HSET', key.agentClaims(name), task, lock_id)
    -- Its latest claim is what it works on; after an end, any that is left.
    if c.now > (agent.ended_us or 0) then agent.task = task end
    local n = #up.begun
    up.begun[n + 1], up.begun[n + 2] = key.taskStatus(task), 'assigned'
    up.applying[n + 1], up.applying[n + 2] = c[7], ade
    up.running[n + 1], up.running[n + 2] = whole_number(c[9]), task
  end

  -- In the order in which they happened, those of one moment in the order in which they were asked for.
  local function is_before(one, other)
    return one.now < other.now or one.now == other.now and one[16] < other[16]
  end

  -- Answers with how many claims are too young to be entered.
  local function read_claims(up, texts, young)
    local old, opened = {}, key.openedTasks()
    for _, text in ipairs(texts) do
      local _, at = cmsgpack.unpack_one(text)
      if now - at >= young then
        local _, c = cmsgpack.unpack(text)
        c.now = at
        old[#old + 1] = c
      end
    end
    table.sort(old, is_before)
    for _, c in ipairs(old) do begin_claim(up, c) end
    if #old == #texts then redis.call('DEL', opened) else for _, c in ipairs(old) do redis.call('HDEL', opened, c[2]) end end
    return #texts - #old
  end

  -- What agents and people see happen, and the stream of the lifecycle.
  local function tell_move(event, words, ade, told, task, name, at, source, payload, origin, station)
    redis.call('XADD', key.events('task'), 'MAXLEN', '~', ctx.keep, '*', 'event', event, 'timestamp', at,
      'payload', '{"task_id":"' .. ade .. words, 'source', source)
    public('XADD', key.coordinationEvents(), 'MAXLEN', '~', ctx.keep, '*', 'event_type', told, 'task_id', task, 'agent_id', name,
      'timestamp', at, 'source', source, 'payload', payload)
    if origin == 'prd' then
      redis.call('XADD', key.prdOutbox(), '*', 'event_type', told, 'task_id', task, 'agent_id', name, 'timestamp', at,
        'station', station, 'payload', payload)
    end
  end

  local function tell_all(up)
    local rows, services = {}, {}
    local function audit_row(at, words, ade, actor, source, name, token)
      local service = services[source]
      if not service then
        service = cjson.encode(source)
        services[source] = service
      end
      rows[#rows + 1] = '{"at":"' .. at .. words .. ade .. '","actor":' .. actor .. ',"service":' .. service .. ',"agent":"' .. name
        .. '","fencing_token":"' .. token .. '"}'
    end
    local function tell_claim(c)
      local task, name, token, at = c[2], c[3], c[5], c[17]
      local ade = args.head .. task
      tell_move('task:state_changed', '","from":"APPROVED","to":"APPLYING"}', ade, 'task_assigned', task, name, at, c[1],
        '{"attempt":' .. c[8] + 1 .. ',"lock_id":"' .. c[4] .. '","fencing_token":"' .. token .. '"}', c[15], 'working')
      audit_row(at, '","action":"claim","from":"APPROVED","to":"APPLYING","subject":"task:', ade, c[11], c[1], name, token)
    end
    local function tell_end(e)
      tell_move('task:completed', '","from":"APPLYING","to":"COMPLETED"}', e.ade, 'task_completed', e.task, e.agent, e.at, e.source,
        '{"released":' .. e.released .. (e.is_raw and ',"raw":true}' or '}'), e.origin, 'done')
      audit_row(e.at, '","action":"complete","from":"APPLYING","to":"COMPLETED","subject":"task:', e.ade, e.actor, e.source, e.agent, e.token)
    end
    table.sort(up.claims, is_before)
    local next_claim = 1
    for _, e in ipairs(up.ends) do
      while up.claims[next_claim] and up.claims[next_claim].now <= e.now do
        tell_claim(up.claims[next_claim])
        next_claim = next_claim + 1
      end
      tell_end(e)
    end
    for at = next_claim, #up.claims do tell_claim(up.claims[at]) end
    redis.call('XADD', key.auditOutbox(), '*', 'rows', '[' .. table.concat(rows, ',') .. ']')
  end

  local function write_all(command, name, values)
    for from = 1, #values, MANY do public(command, name, unpack(values, from, math.min(#values, from + MANY - 1))) end
  end

  -- Members that are entered (a score, or true) or taken out (false).
  local function write_changes(enter, remove, name, changes)
    if not next(changes) then return end
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

  local function write_indexes(up)
    for from = 1, #up.begun, MANY do redis.call('MSET', unpack(up.begun, from, math.min(#up.begun, from + MANY - 1))) end
    write_all('ZREM', key.tasksByState('APPROVED'), up.approved)
    write_all('ZREM', key.tasksByState('APPLYING'), up.applied)
    write_all('ZADD', key.tasksByState('APPLYING'), up.applying)
    write_all('ZADD', key.tasksByState('COMPLETED'), up.done)
    write_all('ZREM', key.runningTasks(), up.taken)
    write_all('ZADD', key.runningTasks(), up.running)
    keep_held(up.registered)
    for type, locks in pairs(up.of_type) do
      keep_held(locks)
      write_changes('SADD', 'SREM', key.resourceLocks(type), locks)
    end
  end

  -- Answers whether the agent has places taken.
  local function write_places(up, name, agent)
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
    if next(agent.places) then up.registered[capacity] = leases[2] or false end
    for lock_id, token in pairs(agent.places) do
      if token then public('HSET', fence, 'lease:' .. lock_id, token) else public('HDEL', fence, 'lease:' .. lock_id) end
    end
    return leases[1]
  end

  local function write_agent(up, name, agent)
    local row = key.agent(name)
    write_changes('SADD', 'SREM', key.agentLocks(name), agent.locks)
    local has_places = write_places(up, name, agent)
    if redis.call('EXPIRE', row, '86400') == 0 then
      if not agent.claimed_at then return end
      public('HSET', row, 'started_at', agent.claimed_at)
      redis.call('EXPIRE', row, '86400')
      redis.call('SADD', key.knownAgents(), name)
    end
    local task = agent.task or has_places and redis.call('HKEYS', key.agentClaims(name))[1]
    if agent.type then
      public('HSET', row, 'agent_type', agent.type, 'current_task', task or '', 'status', task and 'working' or 'idle')
    else
      public('HSET', row, 'current_task', task or '', 'status', task and 'working' or 'idle')
    end
  end

  local function count_moves(up)
    local counts, claimed, completed, released = key.taskCounts(), #up.claims, #up.ends, up.released
    local c = redis.call('HMGET', counts, 'total', 'pending', 'in_progress', 'completed', 'failed', 'blocked')
    local pending, in_progress = (c[2] or 0) - claimed + released, (c[3] or 0) + claimed - completed
    local ended, blocked = (c[4] or 0) + completed, (c[6] or 0) - released
    redis.call('HSET', counts, 'pending', pending, 'in_progress', in_progress, 'completed', ended, 'blocked', blocked)
    public('HSET', key.progress(), 'total', c[1] or '0', 'pending', pending, 'in_progress', in_progress, 'completed', ended,
      'failed', c[5] or '0', 'blocked', blocked)
  end

  --   most      how many entries of the ledger
  --   young     how long a claim may wait for its completion, in µs
  -- Answers with how many claims and completions were written up, and how many claims were left.
  write_up = function(most, young)
    local entries, claims = redis.call('LPOP', key.ledger(), most) or {}, redis.call('HVALS', key.openedTasks())
    if not entries[1] and not claims[1] then return 0, 0 end
    -- What is gathered here of all of them, to be written at once: claims and ends to tell of; members, or scores and members, of
    -- sorted sets; what of a set is entered or taken out.
    local up = { claims = {}, ends = {}, released = 0, agents = {}, names = {}, begun = {}, approved = {}, applied = {},
      applying = {}, done = {}, taken = {}, running = {}, registered = {}, of_type = {} }
    read_ends(up, entries)
    local kept = read_claims(up, claims, young)
    local written = #up.claims + #up.ends
    if written == 0 then return 0, kept end
    tell_all(up)
    write_indexes(up)
    for _, name in ipairs(up.names) do write_agent(up, name, up.agents[name]) end
    write_changes('ZADD', 'ZREM', key.lockRegistry(), up.registered)
    if up.claims[1] and args.exclusive ~= 1 then refill() end
    count_moves(up)
    return written, kept
  end
end
