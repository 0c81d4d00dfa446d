-- Hand an agent the best task it can do: the task, its lock (the lease), its resources and a place of the agent, in one step.
-- At most args.limit candidates are looked at. One that would collide with a running task is parked there until that ends.
--   args.agent, args.lock_id       the lease; asking again with the same one is the same request
--   args.agent_type, args.lanes, args.capabilities    what the agent is; where it may take from; what it can (text → true)
--   args.task      only this one; empty: the best
--   args.lease_us, args.lease_class, args.hold_us, args.purpose     as for any lock
--   args.limit, args.from          how many candidates; how many of each lane to pass over, for one that asks on
--   args.places    how many tasks an agent may have that nobody registered
--   args.raw_us    how long a plain client is trusted that took a task and has not said so
-- Outcomes: CLAIMED again task token acquired_at expires_at attempt data lock_id · NONE ready more · FULL · REFUSED status
--   PAUSED json · OVERDUE lock agent (reap it, then ask again) · BUSY why holder (only with args.task) · UNKNOWN
-- @include _take.lua
-- @include _review.lua
-- @include _children.lua

act_as(args.agent, args.lock_id)

local function answer(t, again, expires)
  return { 'CLAIMED', again, t.task, t.token, t.claimed_at, expires, t.attempts + 1,
    redis.call('GET', key.taskData(t.ade)) or '{}', t.lock_id }
end

local function held_answer(task)
  local t = load(task)
  return answer(t, 1, redis.call('HGET', key.taskLock(t.ade), 'expires_at') or now_text)
end

local mine = redis.call('HGETALL', key.agentClaims(args.agent))
for at = 1, #mine, 2 do
  if mine[at + 1] == args.lock_id then return held_answer(mine[at]) end
  if mine[at] == args.task then return held_answer(mine[at]) end
end

local place = place_item(args.agent)
read_holders(place)

local function fits(t)
  if t.requires == '' then return true end
  for _, capability in ipairs(cjson.decode(t.requires)) do
    if not args.capabilities[capability] then return false end
  end
  return true
end

local RETRY_US = 2000000
-- Somebody outside the queue has what it needs: looked at again soon, for nothing tells us when that ends.
local function delay(t)
  if not withdraw(t) then return infer(t, 'raw.' .. t.task, 'assigned', args.raw_us) end
  redis.call('ZADD', key.delayedTasks(), seconds(now + RETRY_US), t.task)
  set_status(t, 'blocked')
end

local function park(t, blocker)
  if not withdraw(t) then return infer(t, 'raw.' .. t.task, 'assigned', args.raw_us) end
  note(t, 'parked', blocker)
  redis.call('SADD', key.parkedTasks(blocker), t.task)
  redis.call('ZADD', key.parkedOrder(), t.score, t.task)
end

-- Its approval is gone, or was for something else: it stands before the gate again, for people to be asked anew.
local function send_back(t)
  withdraw(t)
  void_votes(t, '', 'its approval does not hold any more')
  move(t, 'APPROVED', 'SUBMITTED')
  set_status(t, 'blocked')
  note(t, 'reason', 'its approval does not hold any more')
end

local function register()
  if place.limit then return end
  place.limit = args.places
  redis.call('HSET', place.lock, 'max_tasks', args.places, 'active_tasks', 0, 'queued_tasks', 0, 'status', 'active', 'last_heartbeat', now_text)
end

local function enter_agent(t)
  local agent = key.agent(args.agent)
  public('HSETNX', agent, 'started_at', now_text)
  redis.call('HSET', agent, 'agent_type', args.agent_type, 'current_task', t.task, 'status', 'working')
  redis.call('EXPIRE', agent, AGENT_SECONDS)
  redis.call('SADD', key.knownAgents(), args.agent)
end

-- What a claim takes besides a place. Nil if something is not to be had: the task was put where it waits for it, and `why` says
-- what that is; or the answer of the call, if a lease that is over stands in the way.
local why
local function items_for(t, claims, parent)
  local items, what, who
  if parent then
    items, what, who = locks_beside_parent(t, claims, parent)
  else
    items = {}
    for _, claim in ipairs(claims) do items[#items + 1] = resource_item(claim) end
    who = parent_holder(t)
    if who then what = 'reserved' else who = collision(claims, t.task) end
    if who and not what then what = 'collision' end
  end
  local own = task_item(t.ade)
  if items then items[#items + 1] = own end
  for at = 1, not what and #items or 0 do
    -- Those beside a parent have been looked at.
    if not what and (not parent or items[at] == own) then
      what = obstacle(items[at])
      who = what and items[at]
    end
  end
  if not what then return items end
  if what == 'overdue' then return nil, { 'OVERDUE', who.lock, who.last_holder or '' } end
  if what == 'held' then
    delay(t)
    why = { 'BUSY', 'lock', who.lock }
  else
    park(t, what == 'reserved' and t.parent or who)
    why = { 'BUSY', what, who }
  end
  return nil
end

-- Tries one candidate. Answers with what the call answers, or nil if the next is to be tried; sets `why` for one that was named.
--   parent    the task of the same agent that it is part of
local function try(task, parent)
  local t = load(task)
  if not t then return nil end
  if t.status ~= 'pending' then
    why = { 'BUSY', t.status, t.agent }
    return nil
  end
  if redis.call('GET', key.taskState(t.ade)) ~= 'APPROVED' or is_kept_back(t) then
    why = { 'BUSY', 'held', '' }
    return nil
  end
  if t.gated ~= '' and not may_apply(t) then
    send_back(t)
    why = { 'BUSY', 'unapproved', '' }
    return nil
  end
  local claims = claims_of(t)
  local items, answered = items_for(t, claims, parent)
  if not items then return answered end
  if not withdraw(t) then
    infer(t, 'raw.' .. t.task, 'assigned', args.raw_us)
    why = { 'BUSY', 'assigned', t.agent }
    return nil
  end
  if not parent then
    register()
    read_fence(place)
    table.insert(items, 1, place)
  end
  take(t, items, claims, 'assigned')
  enter_agent(t)
  say('task_assigned', t, args.agent, '{"attempt":' .. t.attempts + 1 .. ',"lock_id":"' .. args.lock_id .. '","fencing_token":"' .. t.token .. '"}')
  return answer(t, 0, expires_text)
end

-- The best of the heads of all lanes, and the next, and so on. What does not fit stays where it is.
local CHUNK = 8
local function next_of(lane)
  if lane.at > #lane.found then
    if lane.done then return nil end
    lane.found = redis.call('ZRANGE', key.readyTasks(lane.name), lane.kept, lane.kept + CHUNK - 1, 'WITHSCORES')
    lane.at = 1
    lane.done = #lane.found < CHUNK * 2
    if #lane.found == 0 then return nil end
  end
  return tonumber(lane.found[lane.at + 1])
end

local function search()
  local lanes, looked = {}, 0
  for _, name in ipairs(args.lanes) do lanes[#lanes + 1] = { name = name, kept = args.from, found = {}, at = 1, done = false } end
  while looked < args.limit do
    local best, best_score
    for _, lane in ipairs(lanes) do
      local score = next_of(lane)
      if score and (not best or score < best_score) then best, best_score = lane, score end
    end
    if not best then return { 'NONE', redis.call('ZCARD', key.readyOrder()), 0 } end
    local task = best.found[best.at]
    best.at = best.at + 2
    looked = looked + 1
    local requires = redis.call('HGET', key.taskRecord(task), 'requires')
    local found = fits({ requires = requires or '' }) and try(task)
    if found then return found end
    if redis.call('ZSCORE', key.readyTasks(best.name), task) then best.kept = best.kept + 1 end
  end
  return { 'NONE', redis.call('ZCARD', key.readyOrder()), 1 }
end

-- What is part of the work in hand comes before all else, also for an agent whose hands are full of it.
for _, child in ipairs(children_of(mine)) do
  if args.task == '' or args.task == child.task then
    local found = try(child.task, load(child.parent))
    if found then
      write_progress()
      return found
    end
  end
end

if place.limit and place.status ~= 'active' then return { 'REFUSED', place.status } end
if place.active >= (place.limit or args.places) then
  if mine[1] then return held_answer(mine[1]) end
  return { 'FULL' }
end
for _, what in ipairs({ 'all', args.agent_type }) do
  if is_paused(what) then return { 'PAUSED', redis.call('HGET', key.pauses(), what) or '{}' } end
end

local found
if args.task ~= '' then
  if redis.call('EXISTS', key.taskRecord(args.task)) == 0 then return { 'UNKNOWN' } end
  found = try(args.task) or why
else
  found = search()
end
write_progress()
return found
