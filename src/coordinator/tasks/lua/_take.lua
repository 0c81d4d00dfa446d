-- Taking a task: its lock, its resources and a place of the agent, all or nothing, and the rows that tell of it.
-- @include _work.lua
-- @include ../../locks/lua/_grant.lua
-- @include ../../locks/lua/_grants.lua

local function grant_item(item)
  local us = next_token(item)
  local token = whole_number(us)
  local give = item.kind == 'a' and grant_place or item.shared and grant_shared or grant_alone
  give(item, token)
  seal(item, us, token)
  return token
end

-- @include _collision.lua

-- Why the lock of an item is not to be had now: nil, 'held', or 'overdue' if a lease that is over stands there.
local function obstacle(item)
  if redis.call('EXISTS', item.lock, item.queue) > 0 then
    if not item.shared then return 'held' end
    read_holders(item)
    if not item.held_shared or redis.call('EXISTS', item.queue) == 1 then return 'held' end
    read_fence(item)
    return nil
  end
  read_fence(item)
  return item.state == 'held' and 'overdue' or nil
end

-- Everything a lease consists of. The task lock comes last: it is dearest to hold in vain.
local function take(t, items, claims, status)
  together = {}
  for _, item in ipairs(items) do t.token = grant_item(item) end
  tell_of_all('acquired', '","fencing_token":"' .. t.token .. '",')
  for _, claim in ipairs(claims) do redis.call('ZADD', marks_for(claim), 0, mark_of(claim, t.task)) end
  t.agent, t.lock_id, t.claimed_at = args.agent, args.lock_id, now_text
  local deadline = t.timeout > 0 and now + t.timeout * 1000000 or 0
  note(t, 'agent', t.agent, 'lock_id', t.lock_id, 'token', t.token, 'claimed_at', now_text, 'lease_class', args.lease_class,
    'deadline', deadline > 0 and seconds(deadline) or '', 'note', '', 'percent', '')
  redis.call('HSET', key.agentClaims(t.agent), t.task, t.lock_id)
  redis.call('ZADD', key.runningTasks(), whole_number(deadline > 0 and math.min(deadline, ends) or ends), t.task)
  set_status(t, status)
  move(t, 'APPROVED', 'APPLYING')
  redis.call('HSET', key.taskExecution(t.ade), 'started_at', now_text, 'agent_id', t.agent, 'retry_count', t.attempts)
  redis.call('EXPIRE', key.taskExecution(t.ade), 7776000)
end

-- A plain client took it from the list and has not said who it is: it gets a lease on trust, to be renewed by what it does.
-- No capacity and no locks of resources: it asked for neither. What it works on is marked, so that nobody is sent after it.
local function infer(t, agent, status, lease_us)
  local lease_before, class_before, ends_before, text_before = args.lease_us, args.lease_class, ends, expires_text
  local who, what = args.agent, args.lock_id
  act_as(agent, 'raw.' .. t.task .. '.' .. whole_number(now))
  args.lease_us, args.lease_class = lease_us, 'process'
  ends, expires_text = now + lease_us, iso_time(now + lease_us)
  local item = task_item(t.ade)
  read_fence(item)
  local said, before = public('GET', key.taskStatus(t.task)), t.status
  if redis.call('EXISTS', item.lock) == 0 then
    -- Whoever had it before fell silent, and nobody has said so yet: afterwards nothing would tell of it any more.
    if item.state == 'held' then
      tell(item, 'expired', item.last_holder, '","lock_id":"' .. item.last_lock_id .. '","fencing_token":"' .. whole_number(item.token) .. '"}')
    end
    take(t, { item }, claims_of(t), status)
  else
    -- Somebody outside the queue has its lock: looked at again soon.
    redis.call('ZADD', key.delayedTasks(), seconds(now + 2000000), t.task)
    set_status(t, 'blocked')
  end
  -- What it has said already, and not we, stands for the reconcile to read.
  if said and said ~= before and said ~= 'pending' and said ~= 'blocked' then redis.call('SET', key.taskStatus(t.task), said) end
  say('lease_inferred', t, agent, '{"lease_seconds":' .. lease_us / 1000000 .. '}')
  act_as(who, what)
  args.lease_us, args.lease_class, ends, expires_text = lease_before, class_before, ends_before, text_before
end
