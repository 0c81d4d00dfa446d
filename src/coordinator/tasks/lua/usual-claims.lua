-- Hand out the best ready tasks, as claim.lua does, to agents that are known, have a free place, and ask for no task by name under
-- a lock_id that is new. Usual is the task at the end of the public list, if the agent may take it and nothing stands in the way.
--   args.claims    per request seven texts: agent, lock_id, agent_type, lease_class, lanes and capabilities (each word between spaces), actor
--   const.…_us, const.…_end_us    how long a lease of a class lasts, and with its grace
-- Outcome: for each request CLAIMED … or NONE ready, as claim.lua answers, or UNUSUAL
-- @include _usual.lua
-- @include _collision.lua
local now_us_text, queue, order = whole_number(now), key.taskQueue(), key.readyOrder()
local asked, replies, opened, data, granted = args.claims, {}, {}, {}, {}
-- What leaves the ready sets: all of it, and by its lane.
local gone, lanes = {}, {}

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
  local before = tonumber(last[1] or 0)
  return now > before and now_us_text or whole_number(before + 1), before
end

-- When a lease ends: for people; with its grace as scores, in seconds and in µs; the milliseconds until then; and when to look after
-- it, in whole seconds, which a small sorted set compares much faster. Most who ask together ask for the same, and most tasks may
-- take as long as others.
local terms, limits = {}, {}
local function seconds(us)
  return string.format('%d.%06d', us / 1000000, us % 1000000)
end
local function terms_of(class)
  local found = terms[class]
  if not found then
    local is_agent = class == 'agent'
    local lasts, ends_in = is_agent and const.agent_us or const.process_us, is_agent and const.agent_end_us or const.process_end_us
    local ends = now + ends_in
    found = { expires = iso_time(now + lasts), ends = seconds(ends), ends_us = ends, ttl = whole_number(math.ceil(ends_in / 1000)),
      look = whole_number(math.ceil(ends / 1000000)), field = is_agent and 'lease_class' or 'purpose', word = is_agent and 'agent' or 'task' }
    terms[class] = found
  end
  return found
end
local NO_LIMIT = { text = '', us = math.huge }
local function limit_of(timeout)
  local found = limits[timeout]
  if not found then
    local allowed = tonumber(timeout) or 0
    local us = now + allowed * 1000000
    found = allowed > 0 and { text = seconds(us), us = us } or NO_LIMIT
    limits[timeout] = found
  end
  return found
end

-- What is next on the list, as far as it was read, best first; what of it is left at the end goes back. Most often none of it has a
-- lock, a line or a fence yet, and nobody need look at each.
local found, next_found, is_untouched, is_writing = {}, 1, true, false
local function lock_keys(t, keys)
  local ade, at = args.head .. t.task, #keys
  keys[at + 1], keys[at + 2] = key.taskLock(ade), key.taskLockQueue(ade)
  for place, claim in ipairs(t.claims) do
    keys[at + 1 + 2 * place], keys[at + 2 + 2 * place] = key.resourceLock(claim[1], claim[2]), key.resourceLockQueue(claim[1], claim[2])
  end
end
local function read(popped)
  local keys = {}
  for at, task in ipairs(popped) do
    local r = call('HMGET', key.taskRecord(task), 'status', 'parked', 'lane', 'requires', 'claims', 'timeout', 'attempts', 'born', 'origin', 'gated')
    local is_plain = r[1] == 'pending' and (not r[2] or r[2] == '') and (not r[10] or r[10] == '')
    local t = { task = task, r = r, claims = is_plain and usual_claims(r[5]) or nil }
    found[at] = t
    if t.claims then
      lock_keys(t, keys)
      keys[#keys + 1] = key.taskLockFence(args.head .. task)
    end
  end
  is_untouched = not keys[1] or call('EXISTS', unpack(keys)) == 0
end

-- Whether anything is worked on above or beneath what a task takes. Where little is, all of it is read once: most often nothing is.
local MANY, held, is_shared = 100, nil, false
local function read_held()
  local noted = not is_shared and call('ZRANGE', key.heldExclusive(), '0', MANY)
  held = noted and #noted <= MANY and {}
  for at = 1, held and #noted or 0 do held[string.match(noted[at], '^[^%z]*')] = true end
end
local function folders_above(text, claim)
  if type(claim[5]) ~= 'number' then return end
  local above = {}
  for folder in string.gmatch(string.sub(text, claim[5]), '"([^"]*)"') do above[#above + 1] = folder end
  claim[5] = above
end
local function is_covered(claim)
  for _, folder in ipairs(claim[5]) do
    if held[folder] then return true end
  end
  return call('ZRANGEBYLEX', key.heldExclusive(), '[' .. claim[4], '(' .. claim[4] .. '\255', 'LIMIT', '0', '1')[1]
end
local function collides(t)
  if held == nil then read_held() end
  if held and not next(held) then return false end
  for _, claim in ipairs(t.claims) do folders_above(t.r[5], claim) end
  if not held then return collision(t.claims, t.task) end
  for _, claim in ipairs(t.claims) do
    if is_covered(claim) then return true end
  end
  return false
end

-- Takes a task, or answers nil with nothing written.
local function take(by, t)
  local r, claims, task = t.r, t.claims, t.task
  local lane = r[3]
  if not claims or not string.find(by.lanes, ' ' .. lane .. ' ', 1, true) or not fits(r[4], by.capabilities) then return nil end
  -- Nobody has any of the locks, or waits for one; nobody works on anything above or beneath.
  if not is_untouched then
    local keys = {}
    lock_keys(t, keys)
    if call('EXISTS', unpack(keys)) > 0 then return nil end
  end
  if claims[1] and collides(t) then return nil end
  local ade, token, before = args.head .. task, now_us_text, 0
  if not is_untouched then token, before = next_token(key.taskLockFence(ade)) end
  if not token then return nil end
  local agent, lock_id, term, limit = by.agent, by.lock_id, by.term, limit_of(r[6])
  local expires, attempts = term.expires, r[7] or '0'
  local row = { ctx.source, task, agent, lock_id, token, by.agent_type, r[8], attempts, math.min(term.ends_us, limit.us), term.look, by.actor, before,
    by.class, limit.text, r[9], #data, now_text }
  for at, claim in ipairs(claims) do
    local taken = next_token(key.resourceLockFence(claim[1], claim[2]))
    if not taken then return nil end
    row[14 + 4 * at], row[15 + 4 * at], row[16 + 4 * at], row[17 + 4 * at] = claim[1], claim[2], taken, claim[4]
  end

  -- The resources' locks, then the task's own, then the place; and what is told of it.
  is_writing = true
  local names = ''
  for at = 18, #row, 4 do
    local resource = key.resourceLock(row[at], row[at + 1])
    call('HSET', resource, 'exclusive_holder', agent, 'acquired_at', now_text, 'expires_at', expires, 'purpose', 'task',
      'heartbeat_count', '0', 'queue_length', '0', 'lock_id', lock_id, 'fencing_token', row[at + 2], 'mode', 'exclusive', term.field, term.word)
    call('PEXPIRE', resource, term.ttl)
    call('ZADD', key.heldExclusive(), '0', row[at + 3] .. '\0' .. task)
    if held then held[row[at + 3]] = true end
    names = names .. string.sub(resource, 10) .. '","'
  end
  local lock = key.taskLock(ade)
  call('HSET', lock, 'holder_agent_id', agent, 'acquired_at', now_text, 'expires_at', expires, 'purpose', 'task', 'heartbeat_count', '0',
    'queue_length', '0', 'lock_id', lock_id, 'fencing_token', token, term.field, term.word)
  call('PEXPIRE', lock, term.ttl)
  call('ZADD', key.agentCapacityLeases(agent), term.ends, lock_id)
  call('XADD', key.events('lock'), 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:acquired', 'timestamp', now_text, 'payload',
    '{"lock":"task:' .. ade .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '","fencing_token":"' .. token
      .. '","with":["' .. names .. 'agent:' .. agent .. '"]}', 'source', ctx.source)
  local of_lane, reply = lanes[lane] or {}, { 'CLAIMED', '0', task, token, now_text, expires, whole_number(attempts + 1), '{}', lock_id }
  local at = #data + 1
  opened[2 * at - 1], opened[2 * at], data[at], granted[at], gone[at] = task, cmsgpack.pack(now, row), key.taskData(ade), reply, task
  lanes[lane], of_lane[#of_lane + 1] = of_lane, task
  is_writing = false
  return reply
end

-- How many places an agent has left. Those of silent holders count as taken, too, as long as nobody has looked: an agent that seems
-- full is looked at closely.
local places = {}
local function places_of(agent)
  local free = places[agent]
  if not free then
    local limit = call('HMGET', key.agentCapacity(agent), 'max_tasks', 'status')
    free = limit[2] == 'active' and tonumber(limit[1]) - call('ZCARD', key.agentCapacityLeases(agent)) or 0
    places[agent] = free
  end
  return free
end

local function claim(at)
  local agent = asked[at]
  if places_of(agent) < 1 then return UNUSUAL end
  local best = found[next_found]
  -- Beyond the list there may be more: somebody else is to look.
  if not best then return call('ZCARD', order) > #gone and UNUSUAL or { 'NONE', '0', '0' } end
  local class = asked[at + 3]
  local by = { agent = agent, lock_id = asked[at + 1], agent_type = asked[at + 2], class = class, lanes = asked[at + 4],
    capabilities = asked[at + 5], actor = asked[at + 6], term = terms_of(class) }
  local reply = take(by, best)
  if not reply then return UNUSUAL end
  next_found, places[agent] = next_found + 1, places[agent] - 1
  return reply
end

-- Nothing is usual while something is paused, or may be kept for whoever works on its parent.
local count = #asked / 7
if call('EXISTS', key.pauses(), key.parentTasks(), key.heldShared()) > 0 then
  is_shared = call('EXISTS', key.heldShared()) == 1
  if call('EXISTS', key.pauses(), key.parentTasks()) > 0 then
    for at = 1, count do replies[at] = UNUSUAL end
    return replies
  end
end
local popped = redis.pcall('RPOP', queue, count)
if popped and not popped.err then read(popped) end
-- One request that meets with an error (a key of a foreign type) must not take along what others have gathered.
for at = 1, count do
  local done, reply = pcall(claim, at * 7 - 6)
  replies[at] = done and reply or UNUSUAL
  -- Half taken is not to be offered again: the reconcile finds it.
  if is_writing then next_found, is_writing = next_found + 1, false end
end
for at = #found, next_found, -1 do call('RPUSH', queue, found[at].task) end
if gone[1] then
  for at, text in ipairs(call('MGET', unpack(data))) do granted[at][8] = text or '{}' end
  for lane, members in pairs(lanes) do call('ZREM', key.readyTasks(lane), unpack(members)) end
  call('ZREM', order, unpack(gone))
  call('ZREM', key.offeredTasks(), unpack(gone))
  call('HSET', key.openedTasks(), unpack(opened))
end
return replies
