-- A task as the queue has it: its record, its status, its counts, what is told of it. Every script over tasks starts here.
--   args.head      what stands before a task's id in ADE: empty in the default project
--   args.agent     whose locks are meant; act_as() changes it
--   args.lock_id   which lease
--   args.publish, args.grace_us    see the locks' _locks.lua; on one server only
--   args.window    how many ready tasks the public list shows
--   args.exclusive    see _listing.lua
-- @include ../../locks/lua/_now.lua
-- @include ../../../redis/lua/_audit.lua
-- @include _public.lua
local whole, publish, grace_us = true, args.publish, args.grace_us
local registry, waiting, stream = key.lockRegistry(), key.waitedLocks(), key.events('lock')
local index, waitfor
-- @include ../../locks/lua/_lock.lua
-- @include _ledger.lua
write_up(1000, 0)
-- @include _life.lua

-- The locks of a lease are taken and given back together: one event names them all. Of a place nobody else is told.
local tell_of_one, together = tell, nil
local function tell(item, word, agent, facts)
  if not together or word ~= 'acquired' and word ~= 'released' then return tell_of_one(item, word, agent, facts) end
  if item.kind ~= 'a' then redis.call(args.publish, item.channel, word .. ':' .. agent) end
  together[#together + 1] = item.kind == 'a' and 'agent:' .. agent or string.sub(item.lock, 10)
end

-- They are taken in this order: place, resources, task; and named as they are given back, from the task on.
local function tell_of_all(word, facts)
  local names = together
  together = nil
  if #names == 0 then return end
  if names[2] and word == 'acquired' then
    table.insert(names, 1, table.remove(names))
    table.insert(names, (table.remove(names, 2)))
  end
  redis.call('XADD', stream, 'MAXLEN', '~', ctx.keep, '*', 'event', 'lock:' .. word, 'timestamp', now_text, 'payload',
    '{"lock":"' .. names[1] .. '","agent_id":"' .. args.agent .. '","lock_id":"' .. args.lock_id .. facts
      .. '"with":[' .. (names[2] and '"' .. table.concat(names, '","', 2) .. '"' or '') .. ']}', 'source', ctx.source)
end

-- The lock fragments speak for args.agent under args.lock_id.
local function act_as(agent, lock_id)
  args.agent, args.lock_id = agent, lock_id
  index, waitfor = key.agentLocks(agent), key.waitFor(agent)
end

local function item_of(kind, shared, lock, queue, waiters, fence, channel)
  return {
    kind = kind, shared = shared, lock = lock, queue = queue, waiters = waiters, fence = fence, channel = channel, leases = false,
    type_index = false, holders = {}, token = 0, state = false, last_lock_id = false, last_released = false, line = false, mine = false,
  }
end

local function task_item(ade)
  return item_of('t', false, key.taskLock(ade), key.taskLockQueue(ade), key.taskLockWaiters(ade), key.taskLockFence(ade),
    key.taskLockChannel(ade))
end

-- A claim on a resource as it stands in the record: type, id, mode, mark, marks above.
local function resource_item(claim)
  local type, id = claim[1], claim[2]
  local item = item_of('r', claim[3] == 's', key.resourceLock(type, id), key.resourceLockQueue(type, id),
    key.resourceLockWaiters(type, id), key.resourceLockFence(type, id), key.resourceLockChannel(type, id))
  item.type_index = key.resourceLocks(type)
  return item
end

local function place_item(agent)
  local item = item_of('a', false, key.agentCapacity(agent), key.agentCapacityQueue(agent), key.agentCapacityWaiters(agent),
    key.agentCapacityFence(agent), key.agentCapacityChannel(agent))
  item.leases = key.agentCapacityLeases(agent)
  return item
end

local function load(task)
  local v = redis.call('HMGET', key.taskRecord(task), 'status', 'lane', 'score', 'born', 'origin', 'requires', 'claims',
    'timeout', 'attempts', 'quarantine', 'aside', 'parked', 'agent', 'lock_id', 'token', 'claimed_at', 'if_failed', 'gated',
    'parent', 'paused', 'undo')
  if not v[1] then return nil end
  return {
    task = task, ade = args.head .. task, status = v[1], lane = v[2], score = v[3], born = v[4], origin = v[5],
    requires = v[6] or '', claims = v[7] or '', timeout = tonumber(v[8]) or 0, attempts = tonumber(v[9]) or 0,
    quarantine = v[10] or '', aside = v[11] or '', parked = v[12] or '', agent = v[13] or '', lock_id = v[14] or '',
    token = v[15] or '', claimed_at = v[16] or '', if_failed = v[17] or 'block', gated = v[18] or '', parent = v[19] or '',
    paused = v[20] or '', undo = v[21] or '',
  }
end

-- Where Redis had lost everything, the task file has said who is at a task: it has a lease on trust, and nothing is left to
-- compare its own with.
local function is_owner(t, agent, lock_id, token)
  if t.agent == 'raw.' .. agent and agent ~= t.task then return true end
  return t.agent == agent and (lock_id == '' or lock_id == t.lock_id) and (token == '' or token == t.token)
end

local function note(t, ...)
  redis.call('HSET', key.taskRecord(t.task), ...)
end

local function claims_of(t)
  return t.claims ~= '' and cjson.decode(t.claims) or {}
end

local function quoted(text)
  return cjson.encode(text)
end

-- The fields of progress sum to the total: each status counts once. Public counts are written from private ones, all of them,
-- so that what a plain client did to them is gone with the next transition.
local COUNTED = { pending = 'pending', blocked = 'blocked', assigned = 'in_progress', in_progress = 'in_progress',
  completed = 'completed', failed = 'failed' }
local tally = {}
local function count(status, by)
  local field = COUNTED[status]
  tally[field] = (tally[field] or 0) + by
end

local function write_progress()
  local counts = key.taskCounts()
  local c = redis.call('HMGET', counts, 'total', 'pending', 'in_progress', 'completed', 'failed', 'blocked')
  local total, pending, in_progress = c[1] or 0, (c[2] or 0) + (tally.pending or 0), (c[3] or 0) + (tally.in_progress or 0)
  local completed, failed, blocked = (c[4] or 0) + (tally.completed or 0), (c[5] or 0) + (tally.failed or 0), (c[6] or 0) + (tally.blocked or 0)
  if next(tally) then
    redis.call('HSET', counts, 'pending', pending, 'in_progress', in_progress, 'completed', completed, 'failed', failed, 'blocked', blocked)
  end
  public('HSET', key.progress(), 'total', total, 'pending', pending, 'in_progress', in_progress, 'completed', completed,
    'failed', failed, 'blocked', blocked)
  tally = {}
end

-- No pause keeps it any more.
local function leave_pause(t)
  if t.paused == '' then return end
  redis.call('ZREM', key.pausedTasks(), t.task)
  note(t, 'paused', '')
  t.paused = ''
end

local function set_status(t, status)
  redis.call('SET', key.taskStatus(t.task), status)
  if t.status == status then return end
  leave_pause(t)
  count(t.status, -1)
  count(status, 1)
  t.status = status
  note(t, 'status', status)
end

local STATIONS = { pending = 'ready', blocked = 'waiting', assigned = 'working', in_progress = 'working', completed = 'done' }
-- What agents and people see happen. For a task from a file it also goes to the outbox, until it is written back there.
local function say(event, t, agent, payload, station)
  public('XADD', key.coordinationEvents(), 'MAXLEN', '~', ctx.keep, '*', 'event_type', event, 'task_id', t.task,
    'agent_id', agent, 'timestamp', now_text, 'source', ctx.source, 'payload', payload or '{}')
  if t.origin == 'prd' then
    redis.call('XADD', key.prdOutbox(), '*', 'event_type', event, 'task_id', t.task, 'agent_id', agent, 'timestamp', now_text,
      'station', station or STATIONS[t.status] or 'failed', 'payload', payload or '{}')
  end
end

local GATE_TIMES = { SUBMITTED = 'submitted_at', APPROVED = 'approved_at', APPLYING = 'applying_at', COMPLETED = 'completed_at' }
local ACTIONS = { DRAFT = 'reopen', SUBMITTED = 'submit', REVIEWING = 'review', APPROVED = 'approve', APPLYING = 'claim', COMPLETED = 'complete',
  REJECTED = 'reject', CANCELLED = 'cancel' }
-- Why the script moves tasks, for the audit; empty where only the caller knows.
local because = ''
-- The lifecycle's side of a move. `from` is what the caller knows it to be.
local function move(t, from, to)
  redis.call('SET', key.taskState(t.ade), to, 'KEEPTTL')
  redis.call('ZREM', key.tasksByState(from), t.ade)
  redis.call('ZADD', key.tasksByState(to), t.born, t.ade)
  if GATE_TIMES[to] then redis.call('HSET', key.taskMetadata(t.ade), GATE_TIMES[to], now_text, 'updated_at', now_text) end
  live_on(t.ade)
  redis.call('XADD', key.events('task'), 'MAXLEN', '~', ctx.keep, '*', 'event', to == 'COMPLETED' and 'task:completed' or 'task:state_changed',
    'timestamp', now_text, 'payload', '{"task_id":"' .. t.ade .. '","from":"' .. from .. '","to":"' .. to .. '"}', 'source', ctx.source)
  audit(now_text, from == 'APPLYING' and to == 'APPROVED' and 'return' or ACTIONS[to], 'task:' .. t.ade, from, to,
    'agent', t.agent, 'fencing_token', t.token, 'reason', because)
end
