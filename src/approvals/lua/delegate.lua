-- Pass a question on to somebody else, who then answers in the place of whoever was asked.
--   args.approval, args.by, args.to, args.to_name, args.reason
--   args.before, args.needs    what the policies ask for, as it was read and as it is with the other person
--   args.span_us, args.remind
-- Outcomes: ASKED request (empty: the other one is asked already) · OWN · CHANGED · and what look() says against it
-- @include _answers.lua

local against, q = look({ approval = args.approval, action = 'delegate', hash = '' })
if against then return against end
local t, request, stats = q.t, key.approvalRequest(q.id), key.taskApprovalStats(q.t.ade)
if is_maker(t.ade, args.to) then return { 'OWN' } end
if redis.call('HGET', stats, 'needs') ~= args.before then return { 'CHANGED' } end

local v = redis.call('HMGET', request, 'priority', 'delegation_chain', 'config_version', 'risk', 'policies')
local chain = string.sub(v[2], 1, -2) .. ',' .. quoted(args.to) .. ']'
redis.call('HSET', request, 'status', 'DELEGATED', 'delegated_to', args.to, 'responded_at', now_text, 'response_action', 'delegate',
  'response_reason', args.reason, 'reviewed_by', args.by)
close_question(q.id, q.reviewer)
redis.call('HSET', stats, 'needs', args.needs)
local asked = ''
if not is_asked(t, args.to) then
  asked = ask(t, { to = args.to, name = args.to_name, chain = chain, priority = v[1], hash = q.hash, version = v[3], risk = tonumber(v[4]),
    policies = v[5] }, { span_us = args.span_us, remind = args.remind })
  redis.call('HSET', key.approvalRequest(asked), 'by_hand', '1')
end
tell('approval', 'approval:delegated', '{"approval_id":"' .. q.id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. q.reviewer .. '","to":'
  .. quoted(args.to) .. '}')
audit(now_text, 'delegate', 'approval:' .. q.id, 'REVIEWING', 'REVIEWING', 'task', t.ade, 'config_hash', q.hash, 'reason', args.reason,
  'detail', '{"to":' .. quoted(args.to) .. '}')
write_stats(t, cjson.decode(args.needs), q.hash)
return { 'ASKED', asked }
