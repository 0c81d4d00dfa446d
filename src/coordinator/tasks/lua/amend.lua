-- Change what is known of tasks: content, edges, places in the queue, quarantine. What is not named stays as it is. A task that
-- runs keeps the resources it took; new ones count from its next try.
--   args.changes    list of: id, and any of rank, lane, requires, claims, if_failed, timeout, parent, wants, found_by, data, meta, config, deps,
--                    complaint, quarantine, aside; config_hash and editor with config; gate 1: it must be asked for since
-- Outcome: the ids that are known
-- @include _failing.lua
-- @include _indexes.lua
-- @include _edges.lua

local TWO_32 = 4294967296

local function rewire(id, deps, if_failed)
  local wanted = {}
  for _, need in ipairs(deps) do wanted[need] = true end
  for _, need in ipairs(public('SMEMBERS', key.taskDependencies(id))) do
    if not wanted[need] then
      public('SREM', key.taskDependencies(id), need)
      redis.call('SREM', key.openDependencies(id), need)
      redis.call('SREM', key.dependents(need), id)
    end
  end
  for _, need in ipairs(deps) do
    if public('SADD', key.taskDependencies(id), need) == 1 then
      redis.call('SADD', key.dependents(need), id)
      if waits_for(if_failed, need) then redis.call('SADD', key.openDependencies(id), need) end
    end
  end
end

-- Another policy counts for what has failed already, too.
local function wait_anew(t)
  for _, need in ipairs(public('SMEMBERS', key.taskDependencies(t.task))) do
    redis.call(waits_for(t.if_failed, need) and 'SADD' or 'SREM', key.openDependencies(t.task), need)
  end
end

local function rescore(t, change)
  local old = tonumber(t.score)
  local score = change.rank and whole_number(change.rank * TWO_32 + old % TWO_32) or t.score
  if score == t.score and (not change.lane or change.lane == t.lane) then return end
  if t.status == 'pending' and t.parked == '' and not withdraw(t) then
    -- A plain client has it: not offered anew, but left for the reconcile to find.
    redis.call('ZADD', key.offeredTasks(), seconds(now), t.task)
  end
  t.score, t.lane = score, change.lane or t.lane
  note(t, 'score', t.score, 'lane', t.lane)
  t.moved = true
end

-- Content that nobody has seen passes no gate that other content has opened. What runs goes on as it was handed out.
local function regate(t, change)
  local state = redis.call('GET', key.taskState(t.ade))
  local asked = state == 'REVIEWING' or state == 'APPROVED' and (t.gated ~= '' or change.gate == 1)
  if not asked then return end
  void_votes(t, change.editor, 'it was edited')
  move(t, state, 'SUBMITTED')
end

local PLAIN = { 'requires', 'claims', 'if_failed', 'timeout', 'parent', 'aside', 'wants', 'complaint' }
local known, wired = {}, false
for _, change in ipairs(args.changes) do
  local t = load(change.id)
  if t then
    known[#known + 1] = change.id
    local runs = t.status == 'assigned' or t.status == 'in_progress'
    for _, field in ipairs(PLAIN) do
      if change[field] and not (runs and field == 'claims') then
        note(t, field, change[field])
        t[field] = change[field]
      end
    end
    if change.parent and t.parent ~= '' then enter_child(t) end
    if change.quarantine then
      t.quarantine = change.quarantine
      note(t, 'quarantine', t.quarantine)
      if t.quarantine == '' then redis.call('HDEL', key.quarantine(), t.task) else redis.call('HSET', key.quarantine(), t.task, t.quarantine) end
    end
    if change.found_by then reindex(t, change.found_by) end
    if change.data then redis.call('SET', key.taskData(t.ade), change.data, 'KEEPTTL') end
    if change.meta then redis.call('SET', key.taskMeta(t.task), change.meta) end
    if change.config then
      local config = key.taskConfig(t.ade)
      redis.call('HSET', config, 'config_hash', change.config_hash, unpack(change.config))
      redis.call('HINCRBY', config, 'version', 1)
      redis.call('HSET', key.taskMetadata(t.ade), 'updated_at', now_text, 'editor_id', change.editor)
      regate(t, change)
    end
    if change.deps then
      rewire(t.task, change.deps, t.if_failed)
      wired = true
    end
    if change.if_failed then wait_anew(t) end
    rescore(t, change)
    if t.status == 'blocked' or t.status == 'pending' and (t.moved or change.deps or change.if_failed or change.quarantine or change.aside) then settle(t) end
    if change.deps or change.if_failed then fall_with(t, public('SMEMBERS', key.taskDependencies(t.task))) end
    if change.data then say('task_amended', t, '') end
  end
end
if wired then redis.call('HINCRBY', key.taskCounts(), 'graph', 1) end
write_progress()
return known
