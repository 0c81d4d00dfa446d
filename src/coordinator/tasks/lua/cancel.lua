-- Call a task off. Whoever works on it loses its lease and learns so with the next word.
--   args.task, args.reason, args.by
-- Outcomes: CANCELLED · ENDED status (it had ended before) · UNKNOWN
-- @include _failing.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if t.status == 'completed' or t.status == 'failed' then return { 'ENDED', t.status } end
local from = redis.call('GET', key.taskState(t.ade)) or 'APPROVED'
local ran = is_running(t)
if ran then end_work(t) end
fail_for_good(t, from, 'cancelled', args.reason, '{"reason":' .. quoted(args.reason) .. ',"by":' .. quoted(args.by) .. '}')
fall_out(t.task)
if ran then after_work(t) end
write_progress()
return { 'CANCELLED' }
