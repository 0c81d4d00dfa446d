-- Say something about a task, for whoever looks at it next.
--   args.task, args.by, args.text
-- Outcomes: SAID at · UNKNOWN
-- @include _questions.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local comments = key.taskComments(t.ade)
redis.call('RPUSH', comments, '{"by":' .. quoted(args.by) .. ',"at":"' .. now_text .. '","text":' .. quoted(args.text) .. '}')
redis.call('LTRIM', comments, -1000, -1)
redis.call('EXPIRE', comments, LIFE_SECONDS)
tell('task', 'task:commented', '{"task_id":"' .. t.ade .. '","by":' .. quoted(args.by) .. ',"text":' .. quoted(args.text) .. '}')
return { 'SAID', now_text }
