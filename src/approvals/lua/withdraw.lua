-- Take a vote back. Before the quorum the question is open again, as are those of people who followed it; after it, what no longer has its quorum is rejected.
--   args.approval, args.by, args.reason; args.span_us, args.remind
-- Outcomes: REVIEWING · APPROVED (still enough) · REJECTED · NOT_ASSIGNED reviewer · NO_VOTE · STATE state · UNKNOWN
-- @include _reopen.lua

local v = redis.call('HMGET', key.approvalRequest(args.approval), 'task_id', 'reviewer_id')
local t = v[1] and task_of(v[1])
if not t then return { 'UNKNOWN' } end
if not same_person(v[2], args.by) then return { 'NOT_ASSIGNED', v[2] } end
local raw = redis.call('HGET', key.approvalVotes(t.ade), v[2])
local vote = raw and cjson.decode(raw)
if not vote or vote.request ~= args.approval or vote.action ~= 'approve' then return { 'NO_VOTE' } end
local state = redis.call('GET', key.taskState(t.ade)) or ''
if state ~= 'REVIEWING' and state ~= 'APPROVED' then return { 'STATE', state } end

local request = key.approvalRequest(args.approval)
local needs = cjson.decode(redis.call('HGET', key.taskApprovalStats(t.ade), 'needs') or '[]')
redis.call('HDEL', key.approvalVotes(t.ade), v[2])
tell('approval', 'approval:withdrawn', '{"approval_id":"' .. args.approval .. '","task_id":"' .. t.ade .. '","reviewer":"' .. v[2]
  .. '","reason":' .. quoted(args.reason) .. '}')
local to = 'REVIEWING'
if state == 'APPROVED' then
  redis.call('HSET', request, 'status', 'REJECTED', 'response_action', 'reject', 'response_reason', args.reason, 'responded_at', now_text)
  to = write_stats(t, needs, vote.hash) and 'APPROVED' or 'REJECTED'
else
  reopen(t, args.approval, needs)
  write_stats(t, needs, vote.hash)
end
audit(now_text, 'withdraw', 'approval:' .. args.approval, state, to, 'task', t.ade, 'config_hash', vote.hash, 'reason', args.reason)
if to == 'REJECTED' then
  reject(t, 'APPROVED', args.reason, args.by)
  write_progress()
end
return { to }
