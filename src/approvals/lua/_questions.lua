-- Asking people about a task.
-- @include ../../coordinator/tasks/lua/_failing.lua
-- @include ../../redis/lua/_audit.lua

local LIFE_SECONDS, PREVIEW_SECONDS, DAY_SECONDS = 7776000, 604800, 2678400
local TWO_33 = 8589934592
local RAISED = { LOW = 'NORMAL', NORMAL = 'HIGH', HIGH = 'URGENT', URGENT = 'URGENT' }
local BONUS = { URGENT = 1000, HIGH = 500, NORMAL = 100, LOW = 0 }

local function count_pending(person)
  redis.call('HSET', key.userApprovalStats(person), 'pending_count', redis.call('ZCARD', key.userApprovalQueue(person)))
end

-- The prescribed score is the whole part; of two that have the same, the fraction puts the one first that is due sooner.
local function inbox_score(risk, priority, due_us)
  return string.format('%.12f', risk * 10 + BONUS[priority] + (TWO_33 - due_us / 1000000) / TWO_33)
end

-- Puts an open question where its reviewer and the clock find it.
--   term.span_us   how long there is to answer; term.remind   after which part of that to remind, 0: never
local function open_question(id, person, risk, priority, term)
  local due_us, remind_us = now + term.span_us, now + math.floor(term.remind * term.span_us)
  redis.call('HSET', key.approvalRequest(id), 'due_at', iso_time(due_us), 'due_us', whole_number(due_us), 'wake_us', whole_number(due_us),
    'span_us', whole_number(term.span_us), 'remind_us', whole_number(remind_us), 'escalates', '1')
  redis.call('ZADD', key.userApprovalQueue(person), inbox_score(risk, priority, due_us), id)
  redis.call('ZADD', key.approvalQueue(), seconds(due_us), id)
  if term.remind > 0 then redis.call('ZADD', key.approvalReminders(), seconds(remind_us), id) end
  count_pending(person)
  return due_us
end

-- Takes it away from there again. A reminder that finds nothing to remind of takes itself away.
local function close_question(id, person)
  redis.call('ZREM', key.userApprovalQueue(person), id)
  redis.call('ZREM', key.approvalQueue(), id)
  count_pending(person)
end

-- One question to one person. Answers with its id.
local function ask(t, question, term)
  local number = redis.call('HINCRBY', key.taskApprovalStats(t.ade), 'last_request', 1)
  local id = t.ade .. '.' .. whole_number(number)
  local request = key.approvalRequest(id)
  redis.call('HSET', request, 'task_id', t.ade, 'reviewer_id', question.to, 'reviewer_name', question.name, 'status', 'PENDING',
    'priority', question.priority, 'delegation_chain', question.chain, 'created_at', now_text, 'asked_us', whole_number(now),
    'config_hash', question.hash, 'config_version', question.version, 'risk', question.risk, 'policies', question.policies,
    'tier', question.tier or 0)
  local due_us = open_question(id, question.to, question.risk, question.priority, term)
  redis.call('EXPIRE', request, LIFE_SECONDS)
  redis.call('SADD', key.approvalIndex(t.ade), id)
  redis.call('EXPIRE', key.approvalIndex(t.ade), LIFE_SECONDS)
  tell('approval', 'approval:requested', '{"approval_id":"' .. id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. question.to
    .. '","due_at":"' .. iso_time(due_us) .. '","risk":' .. question.risk .. ',"priority":"' .. question.priority .. '","tier":' .. (question.tier or 0)
    .. ',"chain":' .. question.chain .. '}')
  return id
end

-- The counts as the votes are now. Answers whether that is enough.
local function write_stats(t, needs, hash)
  local agreed, approvals, refusals = votes_on(t.ade, hash)
  local pending = 0
  for _, id in ipairs(redis.call('SMEMBERS', key.approvalIndex(t.ade))) do
    if redis.call('HGET', key.approvalRequest(id), 'status') == 'PENDING' then pending = pending + 1 end
  end
  local enough = quorum_reached(needs, agreed)
  redis.call('HSET', key.taskApprovalStats(t.ade), 'approved_count', approvals, 'rejected_count', refusals, 'pending_count', pending,
    'quorum_reached', enough and 'true' or 'false')
  return enough
end

-- Through the gate: into the queue, or to wait for what else holds it.
local function let_pass(t, from, because)
  move(t, from, 'APPROVED')
  redis.call('HSET', key.taskRisk(t.ade), 'decided_because', because)
  note(t, 'reason', '')
  tell('task', 'task:approved', '{"task_id":"' .. t.ade .. '","because":' .. quoted(because) .. '}')
  settle(t)
end
