-- Hand out the best ready tasks, as claim.lua does, to agents that are known, have a free place, and ask for no task by name under
-- a lock_id that is new. Usual is the task at the end of the public list, if the agent may take it and nothing stands in the way.
--   args.claims    per request seven texts: agent, lock_id, agent_type, lease_class, lanes and capabilities (each word between spaces), actor
--   args.leases    lease_class → lease_us, ends_us (with its grace)
-- Outcome: for each request CLAIMED … or NONE ready, as claim.lua answers, or UNUSUAL
-- @include _usual.lua
-- @include _collision.lua
local call, now_us_text = redis.call, whole_number(now)
local queue = key.taskQueue()
local asked, replies, opened, data, granted = args.claims, {}, {}, {}, {}

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
  return now > before and now_us_text or whole_number(before + 1), before
end

-- When a lease ends: for people; with its grace as scores, in seconds and in µs; the milliseconds until then; and when to look after
-- it, in whole seconds, which a small sorted set compares much faster. Most who ask together ask for the same.
local terms = {}
local function terms_of(class)
  local found = terms[class]
  if not found then
    local given = args.leases[class]
    local ends = now + given[2]
    found = { expires = iso_time(now + given[1]), ends = string.format('%d.%06d', ends / 1000000, ends % 1000000), ends_us = ends,
      ttl = whole_number(math.ceil(given[2] / 1000)), look = whole_number(math.ceil(ends / 1000000)),
      field = class == 'agent' and 'lease_class' or 'purpose', word = class == 'agent' and 'agent' or 'task' }
    terms[class] = found
  end
  return found
end

-- What is next on the list, as far as it was read, best first; what of it is left at the end goes back.
local found, next_found, is_free, is_writing = {}, 1, true, false
local function read(task)
  local r = call('HMGET', key.taskRecord(task), 'status', 'parked', 'lane', 'requires', 'claims', 'timeout', 'attempts', 'born', 'origin', 'gated')
  local claims = r[1] == 'pending' and (not r[2] or r[2] == '') and (not r[10] or r[10] == '') and usual_claims(r[5])
  return { task = task, r = r, claims = claims or nil }
end
local function lock_keys(t, keys)
  local ade, at = args.head .. t.task, #keys
  keys[at + 1], keys[at + 2] = key.taskLock(ade), key.taskLockQueue(ade)
  for place, claim in ipairs(t.claims) do
    keys[at + 1 + 2 * place], keys[at + 2 + 2 * place] = key.resourceLock(claim[1], claim[2]), key.resourceLockQueue(claim[1], claim[2])
  end
end
local function pop(count)
  local popped = redis.pcall('RPOP', queue, count)
  if not popped or popped.err then return end
  local keys = {}
  found, next_found = {}, 1
  for at, task in ipairs(popped) do
    local t = read(task)
    found[at] = t
    if t.claims then lock_keys(t, keys) end
  end
  is_free = not keys[1] or call('EXISTS', unpack(keys)) == 0
end

-- Whether anything is worked on above or beneath what a task takes. Where little is, all of it is read once: most often nothing is.
local MANY, held = 100, nil
local function read_held()
  local marks = call('EXISTS', key.heldShared()) == 0 and call('ZRANGE', key.heldExclusive(), '0', MANY)
  held = marks and #marks <= MANY and {}
  for at = 1, held and #marks or 0 do held[string.match(marks[at], '^[^%z]*')] = true end
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
  if not is_free then
    local keys = {}
    lock_keys(t, keys)
    if call('EXISTS', unpack(keys)) > 0 then return nil end
  end
  if claims[1] and collides(t) then return nil end
  local ade = args.head .. task
  local lock, token, before = key.taskLock(ade), next_token(key.taskLockFence(ade))
  if not token then return nil end
  local agent, lock_id, term = by.agent, by.lock_id, by.term
  local timeout, due, deadline = tonumber(r[6]) or 0, term.ends_us, ''
  if timeout > 0 then
    local times_out = now + timeout * 1000000
    deadline = string.format('%d.%06d', times_out / 1000000, times_out % 1000000)
    if times_out < due then due = times_out end
  end
  local row = { now, ctx.source, task, agent, lock_id, token, by.agent_type, lane, r[8], r[7] or '0', whole_number(due), term.look, by.actor,
    before, by.class, deadline, r[9], #opened }
  for at, claim in ipairs(claims) do
    local taken = next_token(key.resourceLockFence(claim[1], claim[2]))
    if not taken then return nil end
    row[15 + 4 * at], row[16 + 4 * at], row[17 + 4 * at], row[18 + 4 * at] = claim[1], claim[2], taken, claim[4]
  end

  -- The resources' locks, then the task's own, then the place; and what is told of it.
  is_writing = true
  local names = ''
  for at = 19, #row, 4 do
    local resource = key.resourceLock(row[at], row[at + 1])
    call('HSET', resource, 'exclusive_holder', agent, 'acquired_at', now_text, 'expires_at', term.expires, 'purpose', 'task',
      'heartbeat_count', '0', 'queue_length', '0', 'lock_id', lock_id, 'fencing_token', row[at + 2], 'mode', 'exclusive', term.field, term.word)
    call('PEXPIRE', resource, term.ttl)
    call('ZADD', key.heldExclusive(), '0', row[at + 3] .. '\0' .. task)
    if held then held[row[at + 3]] = true end
    names = names .. string.sub(resource, 10) .. '","'
  end
  call('HSET', lock, 'holder_agent_id', agent, 'acquired_at', now_text, 'expires_at', term.expires, 'purpose', 'task', 'heartbeat_count', '0',
    'queue_length', '0', 'lock_id', lock_id, 'fencing_token', token, term.field, term.word)
  call('PEXPIRE', lock, term.ttl)
  call('ZADD', key.agentCapacityLeases(agent), term.ends, lock_id)
  call('XADD', key.events('lock'), 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:acquired', 'timestamp', now_text, 'payload',
    '{"lock":"task:' .. ade .. '","agent_id":"' .. agent .. '","lock_id":"' .. lock_id .. '","fencing_token":"' .. token
      .. '","with":["' .. names .. 'agent:' .. agent .. '"]}', 'source', ctx.source)
  opened[#opened + 1], opened[#opened + 2] = task, cmsgpack.pack(row)
  is_writing = false
  local reply = { 'CLAIMED', '0', task, token, now_text, term.expires, whole_number((r[7] or 0) + 1), '{}', lock_id }
  data[#data + 1], granted[#granted + 1] = key.taskData(ade), reply
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

local function is_more()
  return call('ZCARD', key.readyOrder()) > #opened / 2
end

local function claim(at)
  local agent, class = asked[at], asked[at + 3]
  if places_of(agent) < 1 then return UNUSUAL end
  -- Beyond the list there may be more; what others took stands among it until it is written up.
  if not found[next_found] and is_more() then
    write_up(1000, 0)
    pop(1)
    if not found[next_found] and is_more() then return UNUSUAL end
  end
  local next = found[next_found]
  if not next then return { 'NONE', '0', '0' } end
  local by = { agent = agent, lock_id = asked[at + 1], agent_type = asked[at + 2], class = class, lanes = asked[at + 4],
    capabilities = asked[at + 5], actor = asked[at + 6], term = terms_of(class) }
  local reply = take(by, next)
  if not reply then return UNUSUAL end
  next_found, places[agent] = next_found + 1, places[agent] - 1
  return reply
end

-- Nothing is usual while something is paused, or may be kept for whoever works on its parent.
local count = #asked / 7
if call('EXISTS', key.pauses(), key.parentTasks()) > 0 then
  for at = 1, count do replies[at] = UNUSUAL end
  return replies
end
pop(count)
-- One request that meets with an error (a key of a foreign type) must not take along what others have gathered.
for at = 1, count do
  local done, reply = pcall(claim, at * 7 - 6)
  replies[at] = done and reply or UNUSUAL
  -- Half taken is not to be offered again: the reconcile finds it.
  if is_writing then next_found, is_writing = next_found + 1, false end
end
for at = #found, next_found, -1 do call('RPUSH', queue, found[at].task) end
if opened[1] then
  for at, text in ipairs(call('MGET', unpack(data))) do granted[at][8] = text or '{}' end
  call('HSET', key.openedTasks(), unpack(opened))
  if call('HLEN', key.openedTasks()) > args.unwritten then write_up(1000, 0) end
end
return replies
