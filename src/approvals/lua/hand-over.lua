-- Pass a question on because its time is up, or because whoever has it cannot answer any more. An answer and this look at the same
-- request in the same step: of the two exactly one happens. Nothing is ever approved here.
--   args.approval
--   args.kind              escalate (only once it is due) or reassign
--   args.wake              when it was to be looked at, as it was read: another time means that somebody was faster
--   args.before, args.needs    what the policies ask for, as it was read and as it is since
--   args.outcome           ask (somebody else), close (others are asked already, and enough of them) or stay (nobody is left)
--   args.to, args.to_name  who is asked; empty unless that is the outcome
--   args.because           why, in words
--   args.on_call           who is told besides; may be empty
--   args.span_us, args.remind
-- Outcomes: ASKED request · CLOSED · STAYS · KNOWN (that it stays was told already) · EARLY due · GONE status · CHANGED · OWN · UNKNOWN
-- @include _answers.lua

local request = key.approvalRequest(args.approval)
local v = redis.call('HMGET', request, 'task_id', 'reviewer_id', 'status', 'due_us', 'wake_us', 'priority', 'delegation_chain', 'config_version',
  'risk', 'policies', 'tier', 'config_hash', 'stranded')
local t = v[1] and task_of(v[1])
if not t then return { 'UNKNOWN' } end
if v[3] ~= 'PENDING' or redis.call('GET', key.taskState(t.ade)) ~= 'REVIEWING' then return { 'GONE', v[3] } end
local stats, reviewer, escalates = key.taskApprovalStats(t.ade), v[2], args.kind == 'escalate'
if v[5] ~= args.wake or redis.call('HGET', stats, 'needs') ~= args.before then return { 'CHANGED' } end
if escalates and now < tonumber(v[5]) then return { 'EARLY', iso_time(tonumber(v[5])) } end
if args.outcome == 'ask' and is_maker(t.ade, args.to) then return { 'OWN' } end
if args.outcome == 'ask' and is_asked(t, args.to) then return { 'CHANGED' } end
if args.outcome == 'stay' and not escalates and v[13] == args.because then return { 'KNOWN' } end

local term = { span_us = args.span_us, remind = args.remind }
local tier = (tonumber(v[11]) or 0) + (escalates and args.outcome == 'ask' and 1 or 0)
local priority = escalates and RAISED[v[6]] or v[6]
local did = args.outcome == 'close' and 'approval:resolved' or escalates and 'approval:escalated' or 'approval:reassigned'
local asked, status = '', 'PENDING'

if args.outcome == 'stay' then
  did = 'approval:exhausted'
  local again = whole_number(now + args.span_us)
  redis.call('HSET', request, 'priority', priority)
  if escalates then
    redis.call('HSET', request, 'escalates', '0', 'wake_us', again)
    redis.call('ZADD', key.approvalQueue(), seconds(now + args.span_us), args.approval)
  else
    redis.call('HSET', request, 'stranded', args.because)
  end
  redis.call('ZADD', key.userApprovalQueue(reviewer), inbox_score(tonumber(v[9]), priority, tonumber(v[4])), args.approval)
else
  status = escalates and 'EXPIRED' or args.outcome == 'ask' and 'DELEGATED' or 'SUPERSEDED'
  redis.call('HSET', request, 'status', status, 'responded_at', now_text, 'response_reason', args.because, 'delegated_to', args.to)
  close_question(args.approval, reviewer)
  redis.call('HSET', stats, 'needs', args.needs)
end
if args.outcome == 'ask' then
  local chain = string.sub(v[7], 1, -2) .. ',' .. quoted(args.to) .. ']'
  asked = ask(t, { to = args.to, name = args.to_name, chain = chain, priority = priority, hash = v[12], version = v[8], risk = tonumber(v[9]),
    policies = v[10], tier = tier }, term)
end
local facts = '{"approval_id":"' .. args.approval .. '","task_id":"' .. t.ade .. '","reviewer":"' .. reviewer .. '","to":' .. quoted(args.to)
  .. ',"asked":"' .. asked .. '","tier":' .. tier .. ',"priority":"' .. priority .. '","on_call":' .. quoted(args.on_call) .. ',"because":'
  .. quoted(args.because) .. ',"by":""}'
tell('approval', did, facts)
audit(now_text, string.sub(did, 10), 'approval:' .. args.approval, 'REVIEWING', 'REVIEWING', 'task', t.ade, 'config_hash', v[12], 'reason',
  args.because, 'detail', facts)
write_stats(t, cjson.decode(args.needs), v[12])
return { ({ ask = 'ASKED', close = 'CLOSED', stay = 'STAYS' })[args.outcome], asked }
