-- Make a question more urgent by one step, once, because too many wait. That is all a backlog does: nobody's answer is done without.
--   args.approval
-- Outcomes: RAISED priority · KNOWN · GONE
-- @include _answers.lua

local request = key.approvalRequest(args.approval)
local v = redis.call('HMGET', request, 'task_id', 'reviewer_id', 'status', 'priority', 'risk', 'due_us', 'raised')
local t = v[1] and task_of(v[1])
if not t or v[3] ~= 'PENDING' then return { 'GONE' } end
if v[7] or v[4] == 'URGENT' then return { 'KNOWN' } end
local priority = RAISED[v[4]]
redis.call('HSET', request, 'priority', priority, 'raised', '1')
redis.call('ZADD', key.userApprovalQueue(v[2]), inbox_score(tonumber(v[5]), priority, tonumber(v[6])), args.approval)
tell('approval', 'approval:raised', '{"approval_id":"' .. args.approval .. '","task_id":"' .. t.ade .. '","reviewer":"' .. v[2] .. '","priority":"'
  .. priority .. '"}')
audit(now_text, 'raise', 'approval:' .. args.approval, 'REVIEWING', 'REVIEWING', 'task', t.ade, 'reason', 'too many requests wait')
return { 'RAISED', priority }
