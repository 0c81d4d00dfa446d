-- Let a task pass in spite of the gate: one admin says so, with a reason and a ticket, and a second one agrees, to this content
-- and within the time. Used once, and told of loudly.
--   args.task, args.by, args.reason, args.ticket
--   args.hash, args.version     what was looked at
--   args.life_us                how long the second one has
-- Outcomes: WAITING until · APPROVED first · SAME_PERSON · OWN · CHANGED · STATE state · UNKNOWN
-- @include _answers.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local state = redis.call('GET', key.taskState(t.ade)) or ''
if state ~= 'DRAFT' and state ~= 'SUBMITTED' and state ~= 'REVIEWING' then return { 'STATE', state } end
local config = key.taskConfig(t.ade)
if redis.call('HGET', config, 'version') ~= args.version then return { 'CHANGED' } end

local override, stats = key.taskOverride(t.ade), key.taskApprovalStats(t.ade)
local v = redis.call('HMGET', override, 'by', 'hash', 'expires_us', 'reason', 'ticket')
local first = v[1] and v[2] == args.hash and now < tonumber(v[3]) and v[1] or nil
if not first then
  redis.call('DEL', override)
  redis.call('HSET', override, 'by', args.by, 'hash', args.hash, 'expires_us', whole_number(now + args.life_us), 'reason', args.reason,
    'ticket', args.ticket, 'at', now_text)
  redis.call('PEXPIRE', override, math.ceil(args.life_us / 1000))
  tell('task', 'task:override_asked', '{"task_id":"' .. t.ade .. '","by":' .. quoted(args.by) .. ',"reason":' .. quoted(args.reason) .. ',"ticket":'
    .. quoted(args.ticket) .. '}')
  audit(now_text, 'override_ask', 'task:' .. t.ade, state, state, 'config_hash', args.hash, 'reason', args.reason, 'ticket', args.ticket)
  return { 'WAITING', iso_time(now + args.life_us) }
end
if same_person(first, args.by) then return { 'SAME_PERSON' } end
if is_maker(t.ade, args.by) then return { 'OWN' } end

redis.call('DEL', override)
void_votes(t, args.by, 'two admins let it pass')
redis.call('HSET', config, 'config_hash', args.hash)
redis.call('HSET', stats, 'needs', '[]', 'override_hash', args.hash, 'sealed', redis.sha1hex(redis.call('GET', key.taskData(t.ade)) or ''),
  'quorum_reached', 'true')
redis.call('EXPIRE', stats, LIFE_SECONDS)
note(t, 'gated', '1')
if state == 'DRAFT' then move(t, 'DRAFT', 'SUBMITTED') end
audit(now_text, 'force_apply', 'task:' .. t.ade, state, 'APPROVED', 'config_hash', args.hash, 'reason', v[4], 'ticket', v[5], 'detail',
  '{"first":' .. quoted(first) .. ',"second":' .. quoted(args.by) .. ',"second_reason":' .. quoted(args.reason) .. '}')
tell('task', 'task:forced', '{"task_id":"' .. t.ade .. '","first":' .. quoted(first) .. ',"second":' .. quoted(args.by) .. ',"ticket":'
  .. quoted(v[5]) .. '}')
let_pass(t, state == 'REVIEWING' and 'REVIEWING' or 'SUBMITTED', first .. ' and ' .. args.by .. ' let it pass: ' .. v[4])
write_progress()
return { 'APPROVED', first }
