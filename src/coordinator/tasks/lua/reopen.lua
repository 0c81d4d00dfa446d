-- Bring a task back that had ended, as a new try: it passes the gate anew, and those that have not begun wait for it again.
--   args.task, args.reason, args.by; args.gate 1: people are to be asked before it is ready
-- Outcomes: OPEN status (DRAFT: it stands before the gate) · RUNNING agent · UNKNOWN
-- @include _again.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if t.status == 'assigned' or t.status == 'in_progress' then return { 'RUNNING', t.agent } end
if t.status == 'completed' or t.status == 'failed' then bring_back(t, args.gate == 1, args.by, args.reason) end
redis.call('ZREM', key.delayedTasks(), t.task)
note(t, 'attempts', 0, 'reason', args.reason, 'agent', '', 'lock_id', '', 'token', '')
settle(t)
say('task_reopened', t, args.by, '{"reason":' .. quoted(args.reason) .. '}')
write_progress()
return { 'OPEN', t.status }
