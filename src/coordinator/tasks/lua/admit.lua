-- Take in tasks that are not known yet, a batch at a time: the record, both facets, the edges, and the place in the queue. What
-- need not be asked for is approved at once; a draft stands before the gate until somebody submits it.
--   args.tasks    list of: id, seq (its number, in the order of its source), spelling (see aliases.ts), lane, rank, born, origin, requires, claims, if_failed, timeout, parent, quarantine, complaint, aside, wants, found_by, data, meta, config
--                 (names and values), author, created_at, metadata, risk (names and values), draft, deps, phase, agent
--   args.lease_us, args.lease_class, args.hold_us, args.purpose    how long one that is said to run may stay silent
-- Outcome: the ids that were new
-- @include _take.lua
-- @include _indexes.lua
-- @include _failing.lua
-- @include _edges.lua

local ADE_SECONDS, TWO_32 = 7776000, 4294967296
local STATE = { open = 'APPROVED', running = 'APPROVED', completed = 'COMPLETED', failed = 'CANCELLED', cancelled = 'CANCELLED' }
local STATUS = { open = 'blocked', running = 'blocked', completed = 'completed', failed = 'failed', cancelled = 'failed' }
local RESULT = { completed = 'success', failed = 'failure', cancelled = 'cancelled' }
local counts = key.taskCounts()

local function write_ade(t, given)
  local state = given.draft == 1 and 'DRAFT' or STATE[given.phase]
  -- What the lifecycle still knows of a task that the queue has lost is as old as that.
  local before = redis.call('SET', key.taskState(t.ade), state, 'EX', ADE_SECONDS, 'GET')
  if before and before ~= state then redis.call('ZREM', key.tasksByState(before), t.ade) end
  redis.call('SET', key.taskData(t.ade), given.data, 'EX', ADE_SECONDS)
  redis.call('HSET', key.taskConfig(t.ade), 'version', 1, unpack(given.config))
  redis.call('EXPIRE', key.taskConfig(t.ade), ADE_SECONDS)
  redis.call('HSET', key.taskMetadata(t.ade), 'author_id', given.author, 'author_name', given.author, 'created_at', given.created_at,
    'updated_at', now_text, unpack(given.metadata))
  if state ~= 'DRAFT' then redis.call('HSET', key.taskMetadata(t.ade), 'submitted_at', now_text, 'approved_at', now_text) end
  if #given.risk > 0 then
    redis.call('HSET', key.taskRisk(t.ade), 'assessed_at', now_text, unpack(given.risk))
    redis.call('EXPIRE', key.taskRisk(t.ade), ADE_SECONDS)
  end
  redis.call('EXPIRE', key.taskMetadata(t.ade), ADE_SECONDS)
  redis.call('ZADD', key.tasksByState(state), t.born, t.ade)
  audit(now_text, 'create', 'task:' .. t.ade, '', state)
  enter_index(t, { 'author', given.author })
  reindex(t, given.found_by)
  if RESULT[given.phase] then
    redis.call('HSET', key.taskExecution(t.ade), 'result', RESULT[given.phase], 'completed_at', now_text)
    redis.call('EXPIRE', key.taskExecution(t.ade), ADE_SECONDS)
  end
end

local function write_edges(given)
  if #given.deps == 0 then return end
  public('SADD', key.taskDependencies(given.id), unpack(given.deps))
  local open = key.openDependencies(given.id)
  for _, need in ipairs(given.deps) do
    redis.call('SADD', key.dependents(need), given.id)
    if waits_for(given.if_failed, need) then redis.call('SADD', open, need) end
  end
end

local function write_record(given)
  local t = {
    task = given.id, ade = args.head .. given.id, status = STATUS[given.phase], lane = given.lane, born = given.born, origin = given.origin,
    score = whole_number(given.rank * TWO_32 + given.seq % TWO_32), requires = given.requires, claims = given.claims,
    timeout = given.timeout, attempts = 0, quarantine = given.quarantine, aside = given.aside, parked = '', agent = '', lock_id = '', token = '',
    claimed_at = '', if_failed = given.if_failed, gated = '', parent = given.parent, paused = '',
  }
  redis.call('HSET', key.taskRecord(t.task), 'status', t.status, 'lane', t.lane, 'score', t.score, 'born', t.born, 'origin', t.origin,
    'requires', t.requires, 'claims', t.claims, 'if_failed', t.if_failed, 'timeout', t.timeout, 'attempts', 0,
    'quarantine', t.quarantine, 'complaint', given.complaint, 'aside', t.aside, 'wants', given.wants, 'parent', t.parent)
  if t.parent ~= '' then enter_child(t) end
  enter_parent(t)
  redis.call('SET', key.taskStatus(t.task), t.status)
  redis.call('SET', key.taskMeta(t.task), given.meta)
  redis.call('ZADD', key.knownTasks(), given.seq, t.task)
  if redis.call('HSETNX', key.spellings(), given.spelling, t.task) == 0 then redis.call('HSET', key.spellings(), given.spelling, '') end
  if t.quarantine ~= '' then redis.call('HSET', key.quarantine(), t.task, t.quarantine) end
  count(t.status, 1)
  return t
end

-- Redis lost the queue, but not the locks: whoever has that of the task goes on under it, with what it holds beside.
local function resume(t)
  local lock = redis.call('HMGET', key.taskLock(t.ade), 'holder_agent_id', 'lock_id', 'fencing_token', 'acquired_at', 'lease_class', 'purpose')
  if not lock[1] or lock[6] ~= 'task' then return false end
  t.agent, t.lock_id, t.token, t.claimed_at = lock[1], lock[2], lock[3], lock[4]
  for _, claim in ipairs(claims_of(t)) do
    local item = resource_item(claim)
    read_holders(item)
    if grant_of(item, t.lock_id) then redis.call('ZADD', marks_for(claim), 0, mark_of(claim, t.task)) end
  end
  local deadline = t.timeout > 0 and seconds(now + t.timeout * 1000000) or ''
  note(t, 'agent', t.agent, 'lock_id', t.lock_id, 'token', t.token, 'claimed_at', t.claimed_at, 'lease_class', lock[5] or 'process', 'deadline', deadline)
  redis.call('HSET', key.agentClaims(t.agent), t.task, t.lock_id)
  redis.call('SADD', key.knownAgents(), t.agent)
  -- When it ends is looked at at once.
  redis.call('ZADD', key.runningTasks(), whole_number(now), t.task)
  set_status(t, 'in_progress')
  move(t, 'APPROVED', 'APPLYING')
  say('lease_inferred', t, t.agent, '{"lock_id":"' .. t.lock_id .. '"}')
  return true
end

local new = {}
for _, given in ipairs(args.tasks) do
  if redis.call('EXISTS', key.taskRecord(given.id)) == 0 then
    local t = write_record(given)
    write_ade(t, given)
    write_edges(given)
    new[#new + 1] = given.id
    local is_open = given.phase == 'open' or given.phase == 'running'
    if given.phase == 'completed' then release_dependents(given.id)
    elseif not is_open then fall_out(given.id)
    elseif is_open and not (t.quarantine == '' and given.draft ~= 1 and resume(t)) then
      if given.phase == 'running' and t.quarantine == '' then infer(t, given.agent, 'in_progress', args.lease_us) else settle(t) end
      fall_with(t, given.deps)
    end
  end
end
if #new > 0 then
  redis.call('HINCRBY', counts, 'total', #new)
  redis.call('HINCRBY', counts, 'graph', 1)
  public('XADD', key.coordinationEvents(), 'MAXLEN', '~', ctx.keep, '*', 'event_type', 'tasks_admitted', 'task_id', new[1], 'agent_id', '',
    'timestamp', now_text, 'source', ctx.source, 'payload', '{"count":' .. #new .. ',"tasks":' .. cjson.encode(new) .. '}')
end
write_progress()
return new
