-- Remind somebody of a question, once for each time that has come, however many were missed.
--   args.approval
--   args.parts    list: after which parts of the time to remind, rising
-- Outcomes: REMINDED · EARLY · OVERDUE (its escalation tells more) · GONE
-- @include _answers.lua

local request, reminders = key.approvalRequest(args.approval), key.approvalReminders()
local v = redis.call('HMGET', request, 'task_id', 'reviewer_id', 'status', 'due_us', 'span_us', 'remind_us', 'risk', 'priority')
local t = v[1] and task_of(v[1])
if not t or v[3] ~= 'PENDING' then
  redis.call('ZREM', reminders, args.approval)
  return { 'GONE' }
end
local due_us, span_us = tonumber(v[4]), tonumber(v[5])
if now < tonumber(v[6]) then
  redis.call('ZADD', reminders, seconds(tonumber(v[6])), args.approval)
  return { 'EARLY' }
end
local next_us
for _, part in ipairs(args.parts) do
  local at = math.floor(due_us - span_us + part * span_us)
  if at > now and at < due_us then next_us = next_us or at end
end
if next_us then
  redis.call('HSET', request, 'remind_us', whole_number(next_us))
  redis.call('ZADD', reminders, seconds(next_us), args.approval)
else
  redis.call('ZREM', reminders, args.approval)
end
if now >= due_us then return { 'OVERDUE' } end
redis.call('HSET', request, 'reminded_at', now_text)
redis.call('HINCRBY', request, 'reminders', 1)
tell('approval', 'approval:reminder', '{"approval_id":"' .. args.approval .. '","task_id":"' .. t.ade .. '","reviewer":"' .. v[2] .. '","due_at":"'
  .. iso_time(due_us) .. '","risk":' .. v[7] .. ',"priority":"' .. v[8] .. '"}')
audit(now_text, 'remind', 'approval:' .. args.approval, 'REVIEWING', 'REVIEWING', 'task', t.ade)
return { 'REMINDED' }
