-- Let a task pass in spite of the gate. Used once, and told of loudly.
--   args.task, args.version     of the content that was looked at; and see _second-person.lua, with args.policy empty
-- Outcomes: WAITING until · APPROVED first · SAME_PERSON · OWN · CHANGED · STATE state · UNKNOWN
-- @include _second-person.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local state = redis.call('GET', key.taskState(t.ade)) or ''
if state ~= 'DRAFT' and state ~= 'SUBMITTED' and state ~= 'REVIEWING' then return { 'STATE', state } end
local config, stats = key.taskConfig(t.ade), key.taskApprovalStats(t.ade)
if redis.call('HGET', config, 'version') ~= args.version then return { 'CHANGED' } end
local waiting_for_second, first = agreed(t, state)
if waiting_for_second then return waiting_for_second end

void_votes(t, args.by, 'two admins let it pass')
redis.call('HSET', config, 'config_hash', args.hash)
redis.call('HSET', stats, 'needs', '[]', 'override_hash', args.hash, 'sealed', redis.sha1hex(redis.call('GET', key.taskData(t.ade)) or ''),
  'quorum_reached', 'true')
redis.call('EXPIRE', stats, LIFE_SECONDS)
note(t, 'gated', '1')
if state == 'DRAFT' then move(t, 'DRAFT', 'SUBMITTED') end
audit(now_text, 'force_apply', 'task:' .. t.ade, state, 'APPROVED', 'config_hash', args.hash, 'reason', first.reason, 'ticket', first.ticket,
  'detail', '{"first":' .. quoted(first.by) .. ',"second":' .. quoted(args.by) .. ',"second_reason":' .. quoted(args.reason) .. '}')
tell('task', 'task:forced', '{"task_id":"' .. t.ade .. '","first":' .. quoted(first.by) .. ',"second":' .. quoted(args.by) .. ',"ticket":'
  .. quoted(first.ticket) .. '}')
let_pass(t, state == 'REVIEWING' and 'REVIEWING' or 'SUBMITTED', first.by .. ' and ' .. args.by .. ' let it pass: ' .. first.reason)
write_progress()
return { 'APPROVED', first.by }
