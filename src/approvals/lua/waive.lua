-- Do without one policy's people where they cannot be reached; what the other policies ask for stays to be met.
--   args.task, args.version     of the content that was looked at; and see _second-person.lua
--   args.before, args.needs     what the policies ask for, as it was read, and without this one
-- Outcomes: WAITING until · REVIEWING first · APPROVED first · SAME_PERSON · OWN · CHANGED · STATE state · UNKNOWN
-- @include _second-person.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
local state = redis.call('GET', key.taskState(t.ade)) or ''
if state ~= 'REVIEWING' then return { 'STATE', state } end
local stats = key.taskApprovalStats(t.ade)
if redis.call('HGET', key.taskConfig(t.ade), 'version') ~= args.version or redis.call('HGET', stats, 'needs') ~= args.before then
  return { 'CHANGED' }
end
local waiting_for_second, first = agreed(t, state)
if waiting_for_second then return waiting_for_second end

local needs, wanted = cjson.decode(args.needs), {}
for _, need in ipairs(needs) do
  for _, person in ipairs(need.voters) do wanted[person] = true end
end
local because = first.by .. ' and ' .. args.by .. ' do without ' .. args.policy .. ': ' .. first.reason
for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
  local found = redis.call('HMGET', key.approvalRequest(id), 'status', 'reviewer_id')
  if found[1] == 'PENDING' and not wanted[found[2]] then
    redis.call('HSET', key.approvalRequest(id), 'status', 'SUPERSEDED', 'responded_at', now_text, 'reviewed_by', args.by, 'response_reason', because)
    close_question(id, found[2])
    tell('approval', 'approval:resolved', '{"approval_id":"' .. id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. found[2] .. '","by":'
      .. quoted(args.by) .. ',"because":' .. quoted(because) .. '}')
  end
end
redis.call('HSET', stats, 'needs', args.needs)
if #needs == 0 then redis.call('HSET', stats, 'override_hash', args.hash) end
local enough = write_stats(t, needs, args.hash) or #needs == 0
local to = enough and 'APPROVED' or 'REVIEWING'
audit(now_text, 'override_policy', 'task:' .. t.ade, 'REVIEWING', to, 'config_hash', args.hash, 'reason', first.reason, 'ticket', first.ticket,
  'detail', '{"policy":' .. quoted(args.policy) .. ',"first":' .. quoted(first.by) .. ',"second":' .. quoted(args.by) .. '}')
tell('task', 'task:policy_overridden', '{"task_id":"' .. t.ade .. '","policy":' .. quoted(args.policy) .. ',"first":' .. quoted(first.by)
  .. ',"second":' .. quoted(args.by) .. ',"ticket":' .. quoted(first.ticket) .. '}')
if enough then
  close_requests(t, 'SUPERSEDED', args.by, because)
  redis.call('HSET', stats, 'quorum_reached', 'true')
  let_pass(t, 'REVIEWING', because)
end
write_progress()
return { to, first.by }
