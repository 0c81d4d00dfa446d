-- End an attempt without success, and decide what follows from its class:
--   task: an attempt is spent; tried again after a pause that doubles, or given up    quota: nothing is spent, and the agent's type pauses
--   auth, infra: nothing is spent, tried again after a pause    cancelled: nothing is spent, back to the queue at once
--   lost (the lease ended unsaid), timeout: an attempt is spent    unheard (a plain client took it and never began): nothing is spent
--   args.task, args.agent, args.lock_id, args.token    as for complete; args.force 1: whoever holds it
--   args.class, args.error, args.rest     why; text for people; the result after its first four fields
--   args.delay_us, args.max_attempts      first pause; how many attempts there are
--   args.pause_type, args.pause_until     which type to pause on quota, until when (seconds, 0: until a person resumes)
-- Outcomes: RETRY attempts in_us · FAILED attempts · LATE status agent · UNKNOWN · ALREADY
-- @include _failing.lua
-- @include _late.lua

local t = load(args.task)
if not t then return { 'UNKNOWN' } end
if not is_running(t) or not is_owner(t, args.agent, args.lock_id, args.token) then
  if args.force == 1 then return { 'ALREADY' } end
  if not is_running(t) and is_owner(t, args.agent, args.lock_id, args.token) then return { 'ALREADY' } end
  return park_result(t, '{"task_id":"' .. t.task .. '","agent_id":"' .. args.agent .. '","completed_at":"' .. now_text .. '",' .. args.rest)
end

local agent, class, text = t.agent, args.class, args.error
because = text
local SPENDS = { task = true, lost = true, timeout = true }
local EVENT = { lost = 'lease_lost', unheard = 'lease_lost', timeout = 'task_timeout', cancelled = 'task_dropped' }
end_work(t)
log_error(t.task, text, agent)
if class == 'timeout' then redis.call('HSET', key.taskExecution(t.ade), 'result', 'timeout', 'completed_at', now_text) end
redis.call('HSET', key.taskExecution(t.ade), 'error', text, 'error_details', '{"class":"' .. class .. '","attempt":' .. t.attempts + 1
  .. ',"agent_id":' .. quoted(agent) .. ',"at":"' .. now_text .. '"}')
local delay = 0
if SPENDS[class] then
  delay = spend_attempt(t, text, class == 'lost' and 0 or args.delay_us, args.max_attempts)
  t.attempts = t.attempts + 1
elseif class == 'quota' then
  redis.call('HSET', key.pauses(), args.pause_type, '{"by":' .. quoted(agent) .. ',"at":"' .. now_text .. '","ends":' .. args.pause_until
    .. ',"reason":' .. quoted(text) .. '}')
elseif class ~= 'cancelled' and class ~= 'unheard' then
  delay = args.delay_us
end
local payload = '{"class":"' .. class .. '","error":' .. quoted(text) .. ',"attempt":' .. t.attempts
local reply
if delay then
  note(t, 'reason', text)
  back_off(t, delay)
  say(EVENT[class] or 'task_failed', t, agent, payload .. ',"retry_in_ms":' .. math.floor(delay / 1000) .. '}')
  reply = { 'RETRY', t.attempts, whole_number(delay) }
else
  redis.call('SET', key.taskResult(t.task), '{"task_id":"' .. t.task .. '","agent_id":"' .. agent .. '","started_at":"' .. t.claimed_at
    .. '","completed_at":"' .. now_text .. '",' .. args.rest)
  fail_for_good(t, 'APPLYING', class == 'timeout' and 'timeout' or 'failure', text, payload .. '}')
  fall_out(t.task)
  reply = { 'FAILED', t.attempts }
end
after_work(t)
write_progress()
return reply
