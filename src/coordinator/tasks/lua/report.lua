-- What an agent says while it works: that it began, or how far it is.
--   args.task, args.agent, args.lock_id, args.token    the lease
--   args.note, args.percent      text, or empty
-- Outcomes: NOTED · LATE status agent · UNKNOWN
-- @include _task.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local mine = is_owner(t, args.agent, args.lock_id, args.token)
if t.status ~= 'assigned' and t.status ~= 'in_progress' or not mine then return { 'LATE', t.status, t.agent } end
if t.status == 'assigned' then
  set_status(t, 'in_progress')
  say('task_started', t, t.agent)
  write_progress()
end
if args.note ~= '' or args.percent ~= '' then
  note(t, 'note', args.note, 'percent', args.percent)
  say('task_progress', t, t.agent, '{"note":' .. quoted(args.note) .. ',"percent":' .. quoted(args.percent) .. '}')
end
redis.call('EXPIRE', key.agent(t.agent), 86400)
return { 'NOTED' }
