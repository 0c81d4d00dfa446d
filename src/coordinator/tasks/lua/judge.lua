-- A person's word on how a task stands; it wins over any lease.
--   args.task, args.to     completed, failed, running, or open (for one that runs: whoever has it loses it)
--   args.agent, args.by, args.reason
--   args.unless_ended      1: whoever speaks believed it open; if it has ended since, that stands
--   args.rest              for completed: the result after its first four fields
--   args.lease_us …        for running: how long the one who works by hand may stay silent
-- Outcomes: DONE · SAME (it stood so already) · ENDED status (meanwhile) · UNKNOWN
-- @include _take.lua
-- @include _failing.lua
-- @include _again.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local to, agent = args.to, args.agent
if args.unless_ended == 1 and (t.status == 'completed' or t.status == 'failed') then return { 'ENDED', t.status } end
local ran = is_running(t)
if to == 'completed' and t.status == 'completed' or to == 'failed' and t.status == 'failed' or to == 'running' and ran then return { 'SAME' } end
if to == 'open' and not ran then return { 'SAME' } end
local from = redis.call('GET', key.taskState(t.ade)) or 'APPROVED'
local payload = '{"by":' .. quoted(args.by) .. ',"reason":' .. quoted(args.reason) .. '}'
if ran then
  end_work(t)
  move(t, from, 'APPROVED')
  from = 'APPROVED'
end
if t.status == 'completed' or t.status == 'failed' then
  -- It had ended otherwise, and so is taken up again first: no state leads from one end to another.
  bring_back(t, false, args.by, args.reason)
  from = 'APPROVED'
end
local waits = from == 'DRAFT' or from == 'SUBMITTED' or from == 'REVIEWING'
if waits and (to == 'completed' or to == 'running') then
  -- Whoever edits the file says that it is done already: nobody need be asked any more.
  void_votes(t, args.by, 'a person has taken it in hand')
  if from == 'DRAFT' then
    move(t, 'DRAFT', 'SUBMITTED')
    from = 'SUBMITTED'
  end
  move(t, from, 'APPROVED')
  from = 'APPROVED'
end
if to == 'completed' then
  if t.status == 'pending' then withdraw(t) end
  redis.call('ZREM', key.delayedTasks(), t.task)
  redis.call('SET', key.taskResult(t.task), '{"task_id":"' .. t.task .. '","agent_id":' .. quoted(agent) .. ',"started_at":"' .. now_text
    .. '","completed_at":"' .. now_text .. '",' .. args.rest)
  set_status(t, 'completed')
  note(t, 'agent', agent, 'lock_id', '', 'token', '')
  move(t, from, 'APPLYING')
  move(t, 'APPLYING', 'COMPLETED')
  redis.call('HSET', key.taskExecution(t.ade), 'completed_at', now_text, 'result', 'success')
  redis.call('EXPIRE', key.taskExecution(t.ade), 7776000)
  redis.call('ZREM', key.deadTasks(), t.task)
  release_dependents(t.task)
  say('task_completed', t, agent, payload)
elseif to == 'failed' then
  fail_for_good(t, from, 'failure', args.reason, payload)
  fall_out(t.task)
elseif to == 'running' then
  if t.status == 'pending' then withdraw(t) end
  infer(t, agent, 'in_progress', args.lease_us)
else
  set_status(t, 'blocked')
  settle(t)
  say('task_reopened', t, args.by, payload)
end
if ran then after_work(t) end
write_progress()
return { 'DONE' }
