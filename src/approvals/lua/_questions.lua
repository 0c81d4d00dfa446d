-- Asking people about a task.
-- @include ../../coordinator/tasks/lua/_failing.lua
-- @include ../../redis/lua/_audit.lua

local LIFE_SECONDS, PREVIEW_SECONDS = 7776000, 604800
local TWO_33 = 8589934592
local BONUS = { URGENT = 1000, HIGH = 500, NORMAL = 100, LOW = 0 }

local function count_pending(person)
  redis.call('HSET', key.userApprovalStats(person), 'pending_count', redis.call('ZCARD', key.userApprovalQueue(person)))
end

-- The prescribed score is the whole part; of two that have the same, the fraction puts the one first that is due sooner.
local function inbox_score(risk, priority, due_us)
  return string.format('%.12f', risk * 10 + BONUS[priority] + (TWO_33 - due_us / 1000000) / TWO_33)
end

-- One question to one person. Answers with its id.
local function ask(t, question, due_us)
  local number = redis.call('HINCRBY', key.taskApprovalStats(t.ade), 'last_request', 1)
  local id = t.ade .. '.' .. whole_number(number)
  local request = key.approvalRequest(id)
  redis.call('HSET', request, 'task_id', t.ade, 'reviewer_id', question.to, 'reviewer_name', question.name, 'status', 'PENDING',
    'priority', question.priority, 'delegation_chain', question.chain, 'created_at', now_text, 'due_at', iso_time(due_us),
    'due_us', whole_number(due_us), 'asked_us', whole_number(now), 'config_hash', question.hash, 'config_version', question.version,
    'risk', question.risk, 'policies', question.policies)
  redis.call('EXPIRE', request, LIFE_SECONDS)
  redis.call('SADD', key.approvalIndex(t.ade), id)
  redis.call('EXPIRE', key.approvalIndex(t.ade), LIFE_SECONDS)
  redis.call('ZADD', key.userApprovalQueue(question.to), inbox_score(question.risk, question.priority, due_us), id)
  redis.call('ZADD', key.approvalQueue(), seconds(due_us), id)
  count_pending(question.to)
  tell('approval', 'approval:requested', '{"approval_id":"' .. id .. '","task_id":"' .. t.ade .. '","reviewer":"' .. question.to
    .. '","due_at":"' .. iso_time(due_us) .. '","risk":' .. question.risk .. ',"chain":' .. question.chain .. '}')
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
