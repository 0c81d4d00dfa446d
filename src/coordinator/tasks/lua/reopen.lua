-- Bring a task back that had ended, as a new try: it passes the gate anew, and those that have not begun wait for it again.
--   args.task, args.reason, args.by; args.gate 1: people are to be asked before it is ready
-- Outcomes: OPEN status (DRAFT: it stands before the gate) · RUNNING agent · UNKNOWN
-- @include _review.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if t.status == 'assigned' or t.status == 'in_progress' then return { 'RUNNING', t.agent } end
if t.status == 'completed' or t.status == 'failed' then
  local from = redis.call('GET', key.taskState(t.ade)) or 'CANCELLED'
  move(t, from, 'DRAFT')
  void_votes(t, args.by, args.reason)
  if args.gate ~= 1 then
    move(t, 'DRAFT', 'SUBMITTED')
    move(t, 'SUBMITTED', 'APPROVED')
  end
  redis.call('ZREM', key.deadTasks(), t.task)
  for _, id in ipairs(redis.call('SMEMBERS', key.dependents(t.task))) do
    local waiting_task = load(id)
    if waiting_task and (waiting_task.status == 'pending' or waiting_task.status == 'blocked') then
      redis.call('SADD', key.openDependencies(id), t.task)
      settle(waiting_task)
    end
  end
  for _, id in ipairs(redis.call('SMEMBERS', key.taskDependencies(t.task))) do
    if redis.call('HGET', key.taskRecord(id), 'status') ~= 'completed' then redis.call('SADD', key.openDependencies(t.task), id) end
  end
end
redis.call('ZREM', key.delayedTasks(), t.task)
note(t, 'attempts', 0, 'reason', args.reason, 'agent', '', 'lock_id', '', 'token', '')
settle(t)
say('task_reopened', t, args.by, '{"reason":' .. quoted(args.reason) .. '}')
write_progress()
return { 'OPEN', t.status }
