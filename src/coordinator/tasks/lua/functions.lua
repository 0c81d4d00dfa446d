-- The verbs of an agent as functions of the server, for whoever has redis-cli and nothing else. Each reads what was typed and
-- runs the script that the daemon runs for the same verb: the same steps, the same fences, the same events.
--   terms.common, terms.raw_us    what every script is told; how long a plain client is trusted
--   terms.lease, terms.extend     class → µs
--   terms.delay_us, terms.max_attempts, terms.limit, terms.rounds
--   terms.types, terms.general    the types that tasks are suggested for; what an agent is that says nothing
--   terms.reserved                words that are no ids
--   terms.version, terms.digest   of what this text is

local function refused(code, text)
  return { err = code .. ' ' .. text }
end

local function is_id(text)
  return text and #text <= 128 and string.match(text, '^%w[%w._-]*$') and not terms.reserved[text]
end

-- What was typed: what must be there, in order, then pairs of a name and a value.
local function read(given, required, optional)
  local said = {}
  for at, name in ipairs(required) do
    if not given[at] then return nil, 'wants ' .. string.upper(table.concat(required, ' ')) end
    said[name] = given[at]
  end
  for at = #required + 1, #given, 2 do
    local name = string.lower(given[at])
    if not optional[name] then return nil, 'does not know "' .. given[at] .. '"' end
    if not given[at + 1] then return nil, 'wants a value for ' .. name end
    said[name] = given[at + 1]
  end
  for name in pairs({ task = 1, agent = 1, type = 1, lock_id = 1 }) do
    if said[name] and not is_id(said[name]) then return nil, name .. ' is letters, digits, ".", "_" and "-", at most 128' end
  end
  return said
end

local function with(named, more)
  for name, value in pairs(more) do named[name] = value end
  return named
end

local function common(said)
  local named = with({}, terms.common)
  return with(named, {
    agent = said.agent, lock_id = said.lock_id or '', task = said.task or '', token = said.token or '',
    actor = '{"user":"' .. said.agent .. '","door":"redis"}',
  })
end

-- As the daemon compares capabilities: "Next.js" is "nextjs".
local function skill(text)
  return (string.gsub(string.lower(text), '[^%w+#\128-\255]', ''))
end

-- The lanes of an agent, its own first; see agents/matcher.ts.
local function lanes_for(agent_type)
  local lower = string.lower(agent_type)
  for _, known in ipairs(terms.types) do
    if string.lower(known) == lower then return { 'only.' .. lower, known, terms.general } end
  end
  return { 'only.' .. lower, terms.general, unpack(terms.types) }
end

local function skills_of(said)
  local skills = {}
  if said.capabilities then
    for text in string.gmatch(said.capabilities, '[^,]+') do skills[skill(text)] = true end
    return skills
  end
  local known, list = pcall(cjson.decode, redis.call('HGET', key.agent(said.agent), 'capabilities') or '[]')
  if known and type(list) == 'table' then
    for _, text in ipairs(list) do skills[skill(tostring(text))] = true end
  end
  return skills
end

local function type_of(said)
  local registered = redis.call('HGET', key.agent(said.agent), 'agent_type')
  return said.type or is_id(registered or nil) and registered or terms.general
end

local function quoted(text)
  return cjson.encode(text)
end

-- The task and its lease on one line, as `reeve next --json` writes them.
local function claim_as_json(said, lease, reply)
  local _, again, _, token, acquired_at, expires_at, attempt, data, lock_id = unpack(reply)
  return '{"task":' .. data .. ',"lease":{"lock_id":' .. quoted(lock_id) .. ',"fencing_token":' .. quoted(token) .. ',"agent_id":' .. quoted(said.agent)
    .. ',"acquired_at":' .. quoted(acquired_at) .. ',"expires_at":' .. quoted(expires_at) .. ',"lease_class":' .. quoted(lease)
    .. ',"attempt":' .. attempt .. '},"again":' .. (again == 1 and 'true' or 'false') .. '}'
end

local BUSY = { assigned = ' is in the hands of ', in_progress = ' is in the hands of ', collision = ' would collide with ', reserved = ' is part of what is in the hands of ', lock = ' needs what somebody holds: ' }

local function claim(said)
  local lease = said.lease or 'agent'
  if not terms.lease[lease] then return refused('INVALID_INPUT', 'lease is process or agent') end
  local agent_type = type_of(said)
  if not said.lock_id then
    local time = redis.call('TIME')
    said.lock_id = 'fn-' .. time[1] .. '-' .. time[2] .. '-' .. redis.call('HINCRBY', key.taskCounts(), 'called', 1)
  end
  local named = with(common(said), {
    agent_type = agent_type, lanes = lanes_for(agent_type), capabilities = skills_of(said), lease_us = terms.lease[lease], lease_class = lease,
    hold_us = 0, purpose = 'task', limit = terms.limit, places = 1, raw_us = terms.raw_us,
  })
  local reply
  for round = 0, terms.rounds do
    named.from = round * terms.limit
    reply = call.claim(named)
    if not (reply[1] == 'NONE' and tonumber(reply[3]) == 1) then break end
  end
  local word = reply[1]
  if word == 'CLAIMED' then return { reply[3], reply[9], reply[4], reply[6], claim_as_json(said, lease, reply) } end
  if word == 'NONE' or word == 'FULL' then return {} end
  if word == 'UNKNOWN' then return refused('TASK_UNKNOWN', 'there is no task ' .. said.task) end
  if word == 'REFUSED' then return refused('AGENT_CLOSED', said.agent .. ' takes no new work: it is ' .. reply[2]) end
  if word == 'BUSY' then return refused('TASK_BUSY', said.task .. (BUSY[reply[2]] or ' cannot be had: ' .. reply[2] .. ' ') .. reply[3]) end
  if word == 'PAUSED' then
    local why = cjson.decode(reply[2]).reason
    return refused('WORK_PAUSED', 'no work is handed out to ' .. said.agent .. ': ' .. (why and why ~= '' and why or 'a person paused it'))
  end
  -- A lease that ended stands in the way; the daemon clears it away within a second or two.
  return refused('TRY_AGAIN', 'a lock is being cleared away: ask again in a second')
end

-- What follows from a word about a task that the caller does not have, or that nobody knows.
local function not_yours(said, reply)
  if reply[1] == 'UNKNOWN' then return refused('TASK_UNKNOWN', 'there is no task ' .. said.task) end
  local holder = reply[3] ~= '' and ' (' .. reply[3] .. ')' or ''
  return refused('LEASE_LOST', said.agent .. ' does not have ' .. said.task .. ': it is ' .. tostring(reply[2]) .. holder .. '. Stop working on it.')
end

local function beat(said)
  local reply = call.beat(with(common(said), { extend_us = terms.extend.process, extend_agent_us = terms.extend.agent,
    lease_us = terms.extend.process, lease_class = 'process', hold_us = 0, purpose = 'task' }))
  return reply[1] == 'EXTENDED' and reply[2] or not_yours(said, reply)
end

local function note(said)
  local percent = said.percent or ''
  if percent ~= '' and not (tonumber(percent) and tonumber(percent) >= 0 and tonumber(percent) <= 100) then
    return refused('INVALID_INPUT', 'percent is a number from 0 to 100')
  end
  local reply = call.report(with(common(said), { note = string.sub(said.text, 1, 10000), percent = percent }))
  if reply[1] ~= 'NOTED' then return not_yours(said, reply) end
  return beat(said)
end

-- The members of a JSON object as they are written: to decode and encode would turn empty lists into objects.
local function members(text)
  local found, at = {}, string.find(text, '{', 1, true) + 1
  while true do
    local from = string.find(text, '[^%s,]', at)
    if not from or string.sub(text, from, from) == '}' then return found end
    local depth, quoting, colon, here = 0, false, nil, from
    while true do
      local c = string.sub(text, here, here)
      if quoting then
        if c == '\\' then here = here + 1 elseif c == '"' then quoting = false end
      elseif c == '"' then quoting = true
      elseif c == '{' or c == '[' then depth = depth + 1
      elseif depth == 0 and c == ':' and not colon then colon = here
      elseif depth == 0 and (c == ',' or c == '}') then break
      elseif c == '}' or c == ']' then depth = depth - 1 end
      here = here + 1
    end
    local name = cjson.decode('[' .. string.sub(text, from, colon - 1) .. ']')[1]
    found[#found + 1] = { name = name, value = string.match(string.sub(text, colon + 1, here - 1), '^%s*(.-)%s*$') }
    at = here
  end
end

local OURS = { task_id = true, agent_id = true, started_at = true, completed_at = true }
local DEFAULTS = { { 'files_modified', '[]' }, { 'notes', '""' }, { 'errors', '[]' } }
local function is_list(value)
  if string.sub(value, 1, 1) ~= '[' then return false end
  for _, one in ipairs(cjson.decode(value)) do
    if type(one) ~= 'string' then return false end
  end
  return true
end

-- The result as the scripts take it, after the four fields that are theirs to write. Nil and why, if it is none.
local function rest_of(text, failure)
  if #text > 1048576 then return nil, 'a result is at most 1 MiB' end
  local known, decoded = pcall(cjson.decode, text)
  if not known or type(decoded) ~= 'table' or not string.find(text, '^%s*{') then return nil, 'a result is a JSON object' end
  local by_name, extra = {}, {}
  for _, member in ipairs(members(text)) do
    by_name[member.name] = member.value
    if not OURS[member.name] then extra[#extra + 1] = member end
  end
  local parts = {}
  for _, default in ipairs(DEFAULTS) do
    local name, value = default[1], by_name[default[1]] or default[2]
    local fits = name == 'notes' and string.sub(value, 1, 1) == '"' or name ~= 'notes' and is_list(value)
    if not fits then return nil, name .. (name == 'notes' and ' is a text' or ' is a list of texts') end
    if name == 'errors' and failure then
      local head = string.match(value, '^%[%s*%]$') and '[' or string.match(value, '^(.-)%s*%]$') .. ','
      value = head .. quoted(failure) .. ']'
    end
    parts[#parts + 1] = quoted(name) .. ':' .. value
    by_name[name] = nil
  end
  for _, member in ipairs(extra) do
    if by_name[member.name] == member.value then
      parts[#parts + 1] = quoted(member.name) .. ':' .. member.value
      by_name[member.name] = nil
    end
  end
  return table.concat(parts, ',') .. '}'
end

-- Answers with when it was completed, and what it made ready.
local function done(said)
  local rest, problem = rest_of(said.result or '{}')
  if not rest then return refused('INVALID_INPUT', problem) end
  local reply = call.complete(with(common(said), { rest = rest, say_raw = 0 }))
  if reply[1] == 'COMPLETED' then return { unpack(reply, 2) } end
  if reply[1] == 'ALREADY' then return { reply[2] } end
  return not_yours(said, reply)
end

local CLASSES = { task = true, quota = true, auth = true, infra = true, cancelled = true }
local function fail(said)
  local class = said.class or 'task'
  if not CLASSES[class] then return refused('INVALID_INPUT', 'class is task, quota, auth, infra or cancelled') end
  local pause_until = tonumber(said['until'] or 0)
  if not pause_until then return refused('INVALID_INPUT', 'until is a time in seconds since 1970') end
  local rest, problem = rest_of(said.result or '{}', said.error)
  if not rest then return refused('INVALID_INPUT', problem) end
  local reply = call.fail(with(common(said), {
    force = 0, class = class, error = string.sub(said.error, 1, 2000), rest = rest, delay_us = terms.delay_us,
    max_attempts = said.final and 0 or terms.max_attempts, pause_type = type_of(said), pause_until = string.format('%.0f', pause_until),
  }))
  if reply[1] == 'RETRY' then return { 'retry', tostring(reply[2]), string.format('%g', tonumber(reply[3]) / 1000000) } end
  if reply[1] == 'FAILED' then return { 'failed', tostring(reply[2]) } end
  if reply[1] == 'ALREADY' then return { 'already' } end
  return not_yours(said, reply)
end

local function drop(said)
  local reply = call.drop(with(common(said), { reason = string.sub(said.reason or 'given back', 1, 2000) }))
  return reply[1] == 'DROPPED' and 'OK' or not_yours(said, reply)
end

-- Each with what must be typed and what may be; no function of Lua can be called before the library is loaded.
local VERBS = {
  { 'claim', claim, { 'agent' }, { task = true, type = true, capabilities = true, lease = true, lock_id = true },
    'AGENT [type T] [capabilities A,B] [task ID] [lease agent|process] [lock_id ID]: task, lock_id, token, expires_at, JSON; nothing: no work' },
  { 'beat', beat, { 'task', 'agent' }, { lock_id = true, token = true }, 'TASK AGENT [lock_id ID]: until when you have it' },
  { 'note', note, { 'task', 'agent', 'text' }, { percent = true, lock_id = true, token = true },
    'TASK AGENT TEXT [percent N] [lock_id ID]: until when you have it' },
  { 'done', done, { 'task', 'agent' }, { result = true, lock_id = true, token = true },
    'TASK AGENT [result JSON] [lock_id ID]: when, and what became ready' },
  { 'fail', fail, { 'task', 'agent', 'error' },
    { class = true, ['until'] = true, final = true, result = true, lock_id = true, token = true },
    'TASK AGENT ERROR [class task|quota|auth|infra|cancelled] [until SECONDS] [final 1] [lock_id ID]: retry attempts seconds, or failed' },
  { 'drop', drop, { 'task', 'agent' }, { reason = true, lock_id = true, token = true }, 'TASK AGENT [reason TEXT] [lock_id ID]: OK' },
}

local help = {}
for at = 1, #VERBS do
  local verb = VERBS[at]
  local name, run, required, optional = prefix .. '_' .. verb[1], verb[2], verb[3], verb[4]
  help[at] = 'FCALL ' .. name .. ' 0 ' .. verb[5]
  redis.register_function({
    function_name = name,
    description = verb[5],
    callback = function(_, given)
      local said, problem = read(given, required, optional)
      if not said then return refused('INVALID_INPUT', name .. ' ' .. problem .. '. Try: FCALL ' .. prefix .. '_help 0') end
      return run(said)
    end,
  })
end
redis.register_function({ function_name = prefix .. '_help', callback = function() return help end, flags = { 'no-writes' } })
redis.register_function({
  function_name = prefix .. '_version',
  description = terms.version .. ' ' .. terms.digest,
  callback = function() return terms.version .. ' ' .. terms.digest end,
  flags = { 'no-writes' },
})
