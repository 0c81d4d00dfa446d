-- End tasks with success, as complete.lua does, for those who hold all that they took and for whose locks nobody waits in line.
-- Whoever waited for a task to complete is released in the same step.
--   args.window, args.exclusive    as for every script over tasks, see _task.lua
--   args.completions    per request seven texts: task, agent, lock_id, token, rest, say_raw, as complete.lua takes them, and the actor
-- Outcome: for each request COMPLETED …, as complete.lua answers, or UNUSUAL
-- @include _usual.lua
-- @include _public.lua
-- @include _window.lua
-- @include _place.lua
local asked, replies = args.completions, {}
local entry, freed, marks, statuses, ended = { now, now_text, ctx.source }, {}, {}, {}, {}
-- A list with gaps is filled by those who know what belongs there: what is released then is not usual.
local has_gaps
local function may_release()
  if has_gaps == nil then has_gaps = args.exclusive == 1 or call('EXISTS', key.pauses(), key.parentTasks()) > 0 end
  return not has_gaps
end

-- What a request is about, as its claim left it: in the ledger, or in the record. Of each resource: type, id, token, mark.
local function from_ledger(text)
  local _, c = cmsgpack.unpack(text)
  local t = { text = text, agent = c[3], lock_id = c[4], token = c[5], claimed_at = c[17], class = c[13], deadline = c[14] }
  for at = 18, #c do t[at - 17] = c[at] end
  return t
end
local function from_record(task)
  local r = call('HMGET', key.taskRecord(task), 'status', 'agent', 'lock_id', 'token', 'claims', 'claimed_at', 'born', 'origin')
  local claims = (r[1] == 'assigned' or r[1] == 'in_progress') and usual_claims(r[5])
  if not claims then return nil end
  local t = { text = false, agent = r[2], lock_id = r[3], token = r[4] or '', claimed_at = r[6], born = r[7], origin = r[8] }
  for _, claim in ipairs(claims) do t[#t + 1], t[#t + 2], t[#t + 3], t[#t + 4] = claim[1], claim[2], '', claim[4] end
  return t
end
-- Nil unless it comes from the holder. Notes the lines at its locks, for its place and for its end.
local lines = {}
local function read(at, text)
  local task, agent, lock_id, token = asked[at], asked[at + 1], asked[at + 2], asked[at + 3]
  local t = text and from_ledger(text) or from_record(task)
  if not t or t.agent ~= agent or lock_id ~= '' and lock_id ~= t.lock_id or token ~= '' and token ~= t.token then return nil end
  local last, ade = #lines, args.head .. task
  t.task, t.ade, t.at, t.from = task, ade, at, last + 1
  lines[last + 1], lines[last + 2], lines[last + 3] = key.parkedTasks(task), key.agentCapacityQueue(agent), key.taskLockQueue(ade)
  for place = 1, #t, 4 do lines[#lines + 1] = key.resourceLockQueue(t[place], t[place + 1]) end
  t.last = #lines
  return t
end

-- The locks of a task, if they are all still its own: no two grants have one lock_id.
local function own_locks(t)
  local locks = { key.taskLock(t.ade) }
  for place = 1, #t, 4 do locks[#locks + 1] = key.resourceLock(t[place], t[place + 1]) end
  for _, lock in ipairs(locks) do
    if call('HGET', lock, 'lock_id') ~= t.lock_id then return nil end
  end
  return locks
end

-- What is released by one call must fit into one command.
local FEW_DEPENDENTS = 100
-- Those that became ready: what is written of all of them is gathered.
local ready, lanes, has_delayed = {}, {}, nil
local function is_ready(id, r)
  if r[1] ~= 'blocked' or r[4] and r[4] ~= '' or r[5] and r[5] ~= '' then return false end
  if has_delayed == nil then has_delayed = call('EXISTS', key.delayedTasks()) == 1 end
  return not (has_delayed and call('ZSCORE', key.delayedTasks(), id)) and call('GET', key.taskState(args.head .. id)) == 'APPROVED'
end
-- One dependency less, for each that waited for this task. Answers with those that became ready.
local function release(dependents, task)
  local released = {}
  for _, id in ipairs(dependents) do
    local open = key.openDependencies(id)
    if call('SREM', open, task) == 1 and call('EXISTS', open) == 0 then
      local r = call('HMGET', key.taskRecord(id), 'status', 'lane', 'score', 'quarantine', 'aside', 'parked')
      if is_ready(id, r) then
        if r[6] and r[6] ~= '' then
          call('SREM', key.parkedTasks(r[6]), id)
          call('ZREM', key.parkedOrder(), id)
          call('HSET', key.taskRecord(id), 'parked', '')
        end
        call('HSET', key.taskRecord(id), 'status', 'pending')
        statuses[#statuses + 1], statuses[#statuses + 2] = key.taskStatus(id), 'pending'
        released[#released + 1], ready[#ready + 1], lanes[#lanes + 1] = id, { id, r[3], r[2] }, r[2]
      end
    end
  end
  return released
end

-- Whoever gets the lock next looks at its fence. A claim that is not written up yet has left that to its end, and nobody has heard of it.
local function free(lock, token, fence, channel, t)
  freed[#freed + 1] = lock
  if t.text then
    call('HSET', fence, 'token', token, 'state', 'released', 'last_holder', t.agent, 'last_lock_id', t.lock_id)
  else
    call('HSET', fence, 'state', 'released', 'last_lock_id', t.lock_id)
    call('PUBLISH', channel, 'released:' .. t.agent)
  end
end

local has_lines, has_dependents
local function complete(t)
  if has_lines and call('EXISTS', unpack(lines, t.from, t.last)) > 0 then return UNUSUAL end
  local dependents = has_dependents and call('SMEMBERS', key.dependents(t.task)) or NONE
  if dependents[1] and not may_release() or #dependents > FEW_DEPENDENTS then return UNUSUAL end
  local locks = own_locks(t)
  if not locks or call('ZREM', key.agentCapacityLeases(t.agent), t.lock_id) == 0 then return UNUSUAL end

  local task, ade, agent, lock_id, names, at = t.task, t.ade, t.agent, t.lock_id, '', t.at
  call('SET', key.taskResult(task), '{"task_id":"' .. task .. '","agent_id":"' .. agent .. '","started_at":"' .. t.claimed_at
    .. '","completed_at":"' .. now_text .. '",' .. asked[at + 4])
  local row = { t.text, 0, asked[at + 5] == '1', asked[at + 6] }
  if not t.text then row[5], row[6], row[7], row[8], row[9], row[10] = task, agent, lock_id, t.token, t.born, t.origin end
  free(locks[1], t.token, key.taskLockFence(ade), key.taskLockChannel(ade), t)
  for place = 2, #locks do
    local from = 4 * place - 7
    local type, id = t[from], t[from + 1]
    free(locks[place], t[from + 2], key.resourceLockFence(type, id), key.resourceLockChannel(type, id), t)
    marks[#marks + 1] = t[from + 3] .. '\0' .. task
    names = names .. string.sub(locks[place], 10) .. '","'
    if not t.text then row[#row + 1], row[#row + 2] = type, id end
  end
  call('XADD', key.events('lock'), 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:released', 'timestamp', now_text, 'payload',
    '{"lock":"task:' .. ade .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '","with":["' .. names
      .. 'agent:' .. agent .. '"]}', 'source', ctx.source)
  -- Whoever sees what it releases must see that it is done.
  if t.text then
    call('HSET', key.taskRecord(task), 'agent', agent, 'lock_id', lock_id, 'token', t.token, 'claimed_at', t.claimed_at, 'lease_class', t.class,
      'deadline', t.deadline, 'note', '', 'percent', '', 'status', 'completed')
  else
    call('HSET', key.taskRecord(task), 'status', 'completed')
  end
  statuses[#statuses + 1], statuses[#statuses + 2] = key.taskStatus(task), 'completed'
  entry[#entry + 1], ended[#ended + 1] = row, task
  if not dependents[1] then return { 'COMPLETED', now_text } end
  local released = release(dependents, task)
  row[2] = #released
  return { 'COMPLETED', now_text, unpack(released, 1, math.min(#released, 1000)) }
end

-- Where what became ready stands: in its lane, in the order, and on the list, most often behind all that is there.
local function list_ready()
  local order, offered, queue = key.readyOrder(), key.offeredTasks(), key.taskQueue()
  table.sort(ready, function(one, other) return tonumber(one[2]) < tonumber(other[2]) end)
  local in_order, in_lane, ids, listed = {}, {}, {}, {}
  for at, one in ipairs(ready) do
    local id, score, lane = one[1], one[2], one[3]
    in_lane[lane] = in_lane[lane] or {}
    local of_lane = in_lane[lane]
    of_lane[#of_lane + 1], of_lane[#of_lane + 2] = score, id
    in_order[2 * at - 1], in_order[2 * at], ids[at] = score, id, id
    listed[2 * at - 1], listed[2 * at] = whole_number(now), id
  end
  local are_listed = call('ZCARD', offered)
  local is_room = call('ZCARD', order) == are_listed and are_listed + #ids <= args.window
  local worst = is_room and redis.pcall('LINDEX', queue, '0')
  local behind = is_room and (not worst or type(worst) == 'string' and tonumber(call('ZSCORE', order, worst) or nil))
  for lane, members in pairs(in_lane) do call('ZADD', key.readyTasks(lane), unpack(members)) end
  call('ZADD', order, unpack(in_order))
  if behind and (behind == true or behind <= tonumber(in_order[1])) then
    call('LPUSH', queue, unpack(ids))
    call('ZADD', offered, unpack(listed))
  else
    -- One that is there already was taken by a plain client, and the reconcile has yet to find out.
    for _, id in ipairs(ids) do
      if not call('ZSCORE', offered, id) then place_on_list(id) end
    end
  end
  call('PUBLISH', key.readyChannel(), table.concat(lanes, ' '))
end

local count, given, ids, waited_for = #asked / 7, {}, {}, {}
for at = 1, count do
  ids[at] = asked[at * 7 - 6]
  waited_for[at] = key.dependents(ids[at])
end
local texts = call('HMGET', key.openedTasks(), unpack(ids))
for at = 1, count do
  local done, t = pcall(read, at * 7 - 6, texts[at])
  given[at] = done and t
end
has_dependents = call('EXISTS', unpack(waited_for)) > 0
has_lines = lines[1] and call('EXISTS', unpack(lines)) > 0
-- One request that meets with an error (a key of a foreign type) must not take along what others have gathered.
for at = 1, count do
  local done, reply = false, nil
  if given[at] then done, reply = pcall(complete, given[at]) end
  replies[at] = done and reply or UNUSUAL
end
if freed[1] then call('DEL', unpack(freed)) end
if marks[1] then call('ZREM', key.heldExclusive(), unpack(marks)) end
if statuses[1] then call('MSET', unpack(statuses)) end
if ready[1] then list_ready() end
if ended[1] then
  call('HDEL', key.openedTasks(), unpack(ended))
  call('RPUSH', key.ledger(), cmsgpack.pack(entry))
end
return replies
